"""The full node: control plane, containerd, kubelet, kube-proxy and DNS, in the order they need each other."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tools.cluster import (
    cgroups,
    components,
    container_runtime,
    control_plane,
    debian,
    dns,
    gobuild,
    host,
    leftovers,
    locks,
    network,
    node,
    paths,
    ports,
    processes,
    registry,
    versions,
)
from tools.cluster.components import Component
from tools.cluster.console import say, step
from tools.cluster.control_plane import ControlPlane
from tools.cluster.errors import ClusterError
from tools.cluster.paths import Layout

_API_PORT = 6443


def layout() -> Layout:
    """Where the full node lives."""
    return Layout(paths.node_state())


def up() -> None:
    """Start the full node, or what of it does not run. Raises ClusterError if it cannot be had.

    Killed components are started again over the existing cluster. Where that fails, or where the last start did not
    get to its end, or the machine was rebooted, what is left is removed and a new, empty cluster started.
    """
    debian.require_root()
    debian.ensure(debian.NODE_PACKAGES)
    gobuild.ensure(versions.NODE_TOOLS)
    registry.ensure_running()
    with locks.locked(paths.cache_root() / "cluster.lock", "starting or stopping the node"):
        if not _resume():
            _start_anew()


def down() -> None:
    """Stop the full node and remove everything of it but images, programs and logs."""
    debian.require_root()
    with locks.locked(paths.cache_root() / "cluster.lock", "starting or stopping the node"):
        registry.stop()
        if not layout().data.exists():
            say("the node does not run")
            return
        with step("stopping the node"):
            leftovers.remove_node(layout())


def restart(name: str) -> None:
    """Stop a component of the running node in order, and start it again. Raises ClusterError as :func:`stopped`."""
    with stopped(name):
        pass


@contextmanager
def stopped(name: str) -> Iterator[None]:
    """One component of the running node is away inside the block, and works again after it.

    Pods are not touched: what they do meanwhile is theirs. It starts with the arguments that it ran with: those of this
    checkout may name files that a node of an older one has not. Raises ClusterError for a node that does not run, a
    component that it has not, and one that does not become ready again.
    """
    plane = recorded_plane()
    identity = components.daemon(plane.layout, name).identity() if plane is not None else None
    if plane is None or identity is None or not processes.is_alive(identity):
        raise ClusterError(f"{name} does not run on this machine")
    found = next((one for one in (*_foundation(plane), *_rest(plane)) if one.name == name), None)
    if found is None:
        raise ClusterError(f"the node has no component {name}")
    same = replace(found, command=processes.command_of(identity))
    components.daemon(plane.layout, name).stop()
    try:
        yield
    finally:
        components.start(plane.layout, same)


def recorded_plane() -> ControlPlane | None:
    """The control plane of a node that was started to the end since the machine booted; None without one."""
    try:
        record = json.loads(layout().ready.read_text())
        return _plane(*record["etcd_ports"]) if record["boot"] == processes.boot_id() else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def runs() -> bool:
    """Whether any component of the node is alive; False also for a node that was killed and not removed."""
    return any(one.running() for one in components.known(layout()))


def _plane(etcd_client_port: int, etcd_peer_port: int) -> ControlPlane:
    return ControlPlane(
        layout=layout(),
        address=network.NODE_ADDRESS,
        port=_API_PORT,
        etcd_client_port=etcd_client_port,
        etcd_peer_port=etcd_peer_port,
        service_range=network.SERVICE_RANGE,
        service_address=network.SERVICE_ADDRESS,
        node_name=node.NODE_NAME,
    )


def _programs() -> list[str]:
    return [str(gobuild.binary(tool)) for tool in versions.NODE_TOOLS]


def _foundation(plane: ControlPlane) -> list[Component]:
    """What the rest of the node needs."""
    return [control_plane.etcd(plane), control_plane.apiserver(plane), container_runtime.component(plane.layout)]


def _rest(plane: ControlPlane) -> list[Component]:
    parts = [control_plane.controller_manager(plane), control_plane.scheduler(plane)]
    return [*parts, node.kubelet(plane), node.kube_proxy(plane), dns.component(plane)]


def _resume() -> bool:
    plane = recorded_plane()
    if plane is None:
        return False
    if json.loads(plane.layout.ready.read_text()).get("programs") != _programs():
        say("the pinned programs changed since the node was started: starting a new one")
        return False
    try:
        network.ensure()
        cgroups.ensure()
        started = components.start(plane.layout, *_foundation(plane))
        started += components.start(plane.layout, *_rest(plane))
    except ClusterError as error:
        say(f"the node cannot be resumed, starting a new one: {error}")
        return False
    say(f"started again: {', '.join(started)}" if started else "the node already runs")
    return True


def _start_anew() -> None:
    place = layout()
    if place.data.exists():
        with step("removing what an earlier start left"):
            leftovers.remove_node(place)
    place.make()
    for log in place.logs.iterdir():
        log.unlink()
    etcd_ports = ports.free_ports(2)
    plane = _plane(*etcd_ports)
    with step("starting the node"):
        host.remember(place)
        network.ensure()
        cgroups.ensure()
        _make_credentials(plane)
        components.start(place, *_foundation(plane))
        container_runtime.import_program(place, versions.PAUSE)
        dns.grant_rights(plane)
        components.start(place, *_rest(plane))
    record = {"etcd_ports": etcd_ports, "boot": processes.boot_id(), "programs": _programs()}
    place.ready.write_text(json.dumps(record))


def _make_credentials(plane: ControlPlane) -> None:
    control_plane.make_credentials(plane)
    control_plane.make_scheduler_credentials(plane)
    node.make_credentials(plane)
    dns.make_credentials(plane)
