"""The NetworkPolicy: whom the pods take connections from. What they reach themselves stays free (hub, DNS, workers).

No rule for the kubelet: Kubernetes has a node reach its own pods whatever a policy says, and one port serves the probes
and the model, so that a rule for probes would let everybody in.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.arguments import PORT
from dsd_operator.render.context import RenderContext
from dsd_operator.render.labels import all_pods
from dsd_operator.render.names import names_for
from dsd_operator.render.neighbours import Neighbours
from dsd_operator.render.owner import child_metadata

API_VERSION: Final = "networking.k8s.io/v1"
KIND: Final = "NetworkPolicy"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""A label that the API server keeps on every namespace, with its name: nobody has to label one for us."""

Peer = Mapping[str, Any]

_ALL_PODS_OF_THE_NAMESPACE: Final[tuple[Peer, ...]] = ({"podSelector": {}},)


def network_policy(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """One rule for each kind of peer, so that `kubectl describe` reads like the spec."""
    wanted, own = resource.spec.network_policy, all_pods(names_for(resource.metadata.name))
    clients = _ALL_PODS_OF_THE_NAMESPACE if wanted.clients is None else wanted.clients
    monitoring = context.neighbours.monitoring if wanted.monitoring is None else wanted.monitoring
    admitted = ((_operator(context.neighbours),), clients, monitoring)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": child_metadata(resource),
        "spec": {
            "podSelector": {"matchLabels": own},
            "policyTypes": ["Ingress"],
            "ingress": [
                *(_rule(peers) for peers in admitted if peers),  # a rule without peers would let everybody in
                *([{"from": [{"podSelector": {"matchLabels": own}}]}] if _grouped(resource, context) else []),
            ],
        },
    }


def _grouped(resource: DSDDeployment, context: RenderContext) -> bool:
    """Whether pods need each other on every port: the processes of one engine over several nodes choose theirs freely.

    Those that the resource no longer asks for do so until the last of them has gone.
    """
    return resource.spec.engine.nodes > 1 or context.grouped


def _operator(neighbours: Neighbours) -> Peer:
    return {
        "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: neighbours.operator_namespace}},
        "podSelector": {"matchLabels": dict(neighbours.operator_labels)},
    }


def _rule(peers: Iterable[Peer]) -> dict[str, Any]:
    return {"from": [dict(peer) for peer in peers], "ports": [{"port": PORT, "protocol": "TCP"}]}
