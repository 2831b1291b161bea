"""The command `dsd`: see, change and convert schedules from a terminal, with or without Kubernetes.

Speaks HTTP to an engine that runs our plugin (`routes` answers), and imports nothing of vLLM.
"""
