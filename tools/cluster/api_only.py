"""The API-only mode: etcd, API server and controllers on loopback and free ports, for integration tests.

Any number run side by side, each in a directory of its own, and beside the full node.
"""

import json
from dataclasses import replace
from pathlib import Path

from tools.cluster import components, control_plane, fake_nodes, gobuild, ports, versions
from tools.cluster.control_plane import ControlPlane
from tools.cluster.errors import ClusterError
from tools.cluster.files import remove_tree
from tools.cluster.paths import Layout

_STARTS = 3  # another process may take a free port between the look and the use
# The state is thrown away, so that nothing is gained by a slow, orderly end.
_STOP_GRACE_SECONDS = 0.0


def plane_of(layout: Layout) -> ControlPlane | None:
    """The control plane that runs in this directory; None if it does not, or not wholly."""
    try:
        recorded = json.loads(layout.ready.read_text())["ports"]
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return _plane(layout, *recorded) if _running(layout) else None


def _plane(layout: Layout, port: int, etcd_client_port: int, etcd_peer_port: int) -> ControlPlane:
    return ControlPlane(
        layout=layout,
        address="127.0.0.1",
        port=port,
        etcd_client_port=etcd_client_port,
        etcd_peer_port=etcd_peer_port,
        service_range="10.96.0.0/16",
        service_address="10.96.0.1",
    )


def _running(layout: Layout) -> bool:
    names = ("etcd", "kube-apiserver", "kube-controller-manager")
    return all(components.daemon(layout, name).running() for name in names)


def start(
    state: Path, admission_plugins: tuple[str, ...] = (), audit: bool = False, nodes: bool = False
) -> ControlPlane:
    """Start a cluster in ``state``, or return the one that runs there. What a crash left is removed first.

    ``admission_plugins`` are those of the API server that are not on by default; for ``audit`` see ControlPlane.
    With ``nodes`` there is a scheduler, and what plays the kubelets of fake nodes (see ``fake_nodes``).

    Raises ClusterError with the component and the end of its log if it does not start.
    """
    layout = Layout(state.resolve())
    existing = plane_of(layout)
    if existing is not None and existing.client.ready():
        return existing
    gobuild.ensure((*versions.API_ONLY_TOOLS, *(fake_nodes.TOOLS if nodes else ())))
    for attempt in range(1, _STARTS + 1):
        stop(state)
        layout.make()
        try:
            return _start(layout, admission_plugins, audit, nodes)
        except components.ComponentError as error:
            _stop_components(layout)
            if attempt == _STARTS or not error.lost_race_for_port:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _start(layout: Layout, admission_plugins: tuple[str, ...], audit: bool, nodes: bool) -> ControlPlane:
    chosen = ports.free_ports(3)
    without = fake_nodes.WITHOUT_CONTROLLERS if nodes else ()
    plane = replace(_plane(layout, *chosen), admission_plugins=admission_plugins, audit=audit, without=without)
    control_plane.make_credentials(plane)
    components.start(layout, control_plane.etcd(plane), control_plane.apiserver(plane))
    components.start(layout, control_plane.controller_manager(plane))
    if nodes:
        fake_nodes.start(plane)
    layout.ready.write_text(json.dumps({"ports": chosen}))
    return plane


def _stop_components(layout: Layout) -> None:
    for one in reversed(components.known(layout)):
        one.stop(_STOP_GRACE_SECONDS)


def stop(state: Path) -> None:
    """Stop what was started in ``state`` and remove all but the logs. Raises ClusterError for another directory."""
    layout = Layout(state.resolve())
    if not layout.root.exists():
        return
    own = {path.name for path in (*layout.owned(), layout.logs, layout.owner)}
    foreign = [entry.name for entry in layout.root.iterdir() if entry.name not in own]
    if foreign:
        raise ClusterError(f"{layout.root} holds files that are not of a cluster: {', '.join(sorted(foreign)[:5])}")
    _stop_components(layout)
    for path in layout.owned():
        remove_tree(path)
