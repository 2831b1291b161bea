"""The local Kubernetes of the project: one real node, or only an API server, built and run from pinned parts.

Run ``python3 -m tools.cluster --help``. Tests and the demo import :mod:`tools.cluster.api`. Only the standard library
is used: this package must work on a machine that has nothing but Python and Go.
"""
