"""Rendering: from one DSDDeployment to the manifests of its children. Pure: no I/O, no clock, no environment.

One file a kind; `plan` lists them in apply order. A new child is one new file and one line there.
"""
