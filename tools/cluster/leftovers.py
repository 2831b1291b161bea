"""Undo a full node, whatever state it is in: stopped in order, half started, or killed.

Nothing here relies on the components' help; everything of ours is recognised by our directory, our control group, or
what was written down before the start.
"""

import hashlib
import signal
from pathlib import Path

from tools.cluster import cgroups, components, container_runtime, host, mounts, network, processes
from tools.cluster.errors import ClusterError
from tools.cluster.files import remove_tree
from tools.cluster.paths import Layout

# Those that would bring pods back go first, the storage last.
_ORDER = ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-proxy", "coredns", "kube-apiserver", "etcd")
_GRACE_SECONDS = 2.0
_SHIM_SOCKETS = Path("/run/containerd/s")
_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LOG_LINKS = Path("/var/log/containers")


def remove_node(layout: Layout) -> None:
    """Stop and remove all of the full node but its logs and the caches. Raises ClusterError if a pod survives."""
    remove_tree(layout.ready)  # first: what is half removed must not be resumed
    for name in _ORDER:
        components.daemon(layout, name).stop(_GRACE_SECONDS)
    if not cgroups.kill():
        raise ClusterError(f"processes of pods cannot be killed: {sorted(cgroups.processes())}")
    containers = _stop_shims(layout)
    if layout.data.exists():
        containers += container_runtime.forget_containers(layout)
    components.daemon(layout, "containerd").stop()
    mounts.unmount_below(layout.root)
    network.remove()
    cgroups.remove()
    _remove_links(layout, containers)
    host.restore(layout)
    for path in layout.owned():
        remove_tree(path)


def _stop_shims(layout: Layout) -> list[str]:
    """Kill containerd's shims, which outlive it on purpose; returns the identifiers of their containers."""
    address = str(container_runtime.socket(layout)).encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile
        identity = processes.identify(int(process.name))
        if identity and words[0].endswith(b"containerd-shim-runc-v2") and address in words:
            processes.send(identity, signal.SIGKILL)
            found.append(words[words.index(b"-id") + 1].decode())
    return found


def _remove_links(layout: Layout, containers: list[str]) -> None:
    """Remove what containerd and the kubelet leave in directories of the system."""
    for container in containers:
        name = container_runtime.socket(layout) / container_runtime.NAMESPACE / container
        (_SHIM_SOCKETS / hashlib.sha256(str(name).encode()).hexdigest()).unlink(missing_ok=True)
        for result in _CNI_RESULTS.glob(f"*-{container}-*"):
            result.unlink()
    for link in _CONTAINER_LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(layout.root):
            link.unlink()
