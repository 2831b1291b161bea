"""The control plane of the DSD operator: watches DSDDeployments, keeps pods, schedules and statuses true."""

__version__ = "0.1.0"
