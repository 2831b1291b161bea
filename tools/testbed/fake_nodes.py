"""Nodes without machines, for an `ApiOnlyCluster(nodes=True)`: kwok plays their kubelets.

A pod there gets an address of the node's network, and is Running and Ready at once. The network is one of the loopback
range, so that `fake_engines` can answer for every pod.
"""

from ipaddress import IPv4Network

from tools.cluster.fake_nodes import ANNOTATION
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

_SECONDS = 60.0


def add(kube: Kube, network: IPv4Network, count: int) -> None:
    """Make `count` nodes that share the pods' network, and wait until all are ready."""
    names = [f"fake-{number}" for number in range(count)]
    for name in names:
        kube.apply(_node(name, network))

    def ready() -> int:
        return sum(_is_ready(node) for node in kube.list("Node", None))

    wait_for(f"{count} fake nodes to be ready", ready, lambda found: found >= count, _SECONDS)


def _node(name: str, network: IPv4Network) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {ANNOTATION: "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "spec": {"podCIDR": str(network)},
    }


def _is_ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
