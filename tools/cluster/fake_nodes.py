"""Fake nodes in the API-only mode: a scheduler, and kwok, which plays the kubelet of every node that asks for it.

Pods there have an address and a status and no process. `tools.testbed.fake_nodes` makes the nodes, with addresses of
the loopback range, and answers for the pods.
"""

from pathlib import Path

from tools.cluster import components, control_plane, gobuild, versions
from tools.cluster.components import Component
from tools.cluster.control_plane import ControlPlane

TOOLS = (versions.SCHEDULER, versions.KWOK)

ANNOTATION = "kwok.x-k8s.io/node"
"""Nodes that carry it with the value ``fake`` are kwok's."""

# The API server takes no loopback address for an endpoint: these would fail for each Service, over and over.
WITHOUT_CONTROLLERS = ("endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller")


def start(plane: ControlPlane) -> None:
    """Start both. Raises ClusterError with the end of the log of the one that does not start."""
    control_plane.make_scheduler_credentials(plane)
    components.start(plane.layout, control_plane.scheduler(plane), _kwok(plane))


def _kwok(plane: ControlPlane) -> Component:
    """kwok as the administrator; that nodes become Ready shows that it works."""
    command: list[str | Path] = [
        gobuild.binary(versions.KWOK),
        f"--kubeconfig={plane.layout.kubeconfig}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake",
        "--node-lease-duration-seconds=40",  # as kubelets have it; without a heartbeat nodes are NotReady after 50 s
    ]
    # Its own settings live in a home directory otherwise, where somebody may have others.
    return Component("kwok", command, lambda: True, {"KWOK_WORKDIR": str(plane.layout.data / "kwok")})
