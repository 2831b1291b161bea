"""The kubectl plugin `kubectl dsd`: what runs, why it does not, and another schedule, from a terminal.

Talks to the API server with the user's own kubeconfig, and to engines through the API server's proxy. Shares the pure
parts of the operator and of the runtime, and the look of the runtime's command `dsd`.
"""

__version__ = "0.1.0"
