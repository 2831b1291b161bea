"""KEDA itself on this machine, for tests: its operator and its metrics server."""
