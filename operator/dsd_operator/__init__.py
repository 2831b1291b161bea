"""The control plane of the DSD operator: watches DSDDeployments and keeps the pods, the schedule and the status true."""

__version__ = "0.1.0"
