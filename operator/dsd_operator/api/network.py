"""`spec.networkPolicy`: who may reach the pods. Nothing of it is in the envelope: no pod ever rolls.

Off unless asked for: a policy shuts out everybody whom it does not name, and only the user knows the gateways, meshes
and clients in other namespaces that must not be shut out by an upgrade of the operator.
"""

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import CIDR_PATTERN, ApiModel, field_extra
from dsd_operator.api.labels import KEY, VALUE

_CIDR: Final = {"type": "string", "minLength": 3, "maxLength": 49, "pattern": CIDR_PATTERN}
_VALUE: Final = {"type": "string", "maxLength": 63, "pattern": VALUE}

_EXPRESSION_RULE: Final = Rule(
    "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    "In and NotIn need values, Exists and DoesNotExist take none",
)
_EXPRESSION: Final = {
    "type": "object",
    "description": "One condition on a label.",
    "required": ["key", "operator"],
    "properties": {
        "key": {"type": "string", "maxLength": 317, "pattern": KEY, "description": "Name of the label."},
        "operator": {
            "type": "string",
            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            "description": "How the label must stand to the values.",
        },
        "values": {
            "type": "array",
            "maxItems": 16,
            "items": _VALUE,
            "x-kubernetes-list-type": "atomic",
            "description": "For In and NotIn.",
        },
    },
    "x-kubernetes-validations": [_EXPRESSION_RULE.dump()],
}


def _selector(what: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"{what}, by labels; an empty selector takes all.",
        "properties": {
            "matchLabels": {
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": _VALUE,
                "description": "Labels that must have these values.",
            },
            "matchExpressions": {
                "type": "array",
                "maxItems": 8,
                "items": _EXPRESSION,
                "x-kubernetes-list-type": "atomic",
                "description": "Further conditions; all must hold.",
            },
        },
    }


_PEER_RULES: Final = (
    Rule(
        "has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",
        "name either ipBlock, or podSelector and namespaceSelector (one of them or both)",
    ),
)

PEER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One peer, as in a NetworkPolicy.",
    "properties": {
        "podSelector": _selector("Pods, of this namespace unless namespaceSelector names others"),
        "namespaceSelector": _selector(
            "Namespaces; the label kubernetes.io/metadata.name, which each has, holds its name"
        ),
        "ipBlock": {
            "type": "object",
            "description": "Addresses outside the cluster, or of its nodes.",
            "required": ["cidr"],
            "properties": {
                "cidr": {**_CIDR, "description": "Range of addresses, e.g. 10.0.0.0/8."},
                "except": {
                    "type": "array",
                    "maxItems": 16,
                    "items": _CIDR,
                    "x-kubernetes-list-type": "atomic",
                    "description": "Ranges inside it that are left out.",
                },
            },
        },
    },
    "x-kubernetes-validations": [rule.dump() for rule in _PEER_RULES],
}

Peer = dict[str, Any]
Peers = tuple[Annotated[Peer, WithJsonSchema(PEER_SCHEMA)], ...]
"""NetworkPolicyPeers, passed on as the user wrote them."""

_MAX_PEERS: Final = 16


class NetworkPolicy(ApiModel):
    """The NetworkPolicy beside the pods."""

    enabled: bool = Field(
        default=False,
        description=(
            "Make a NetworkPolicy: the pods take connections from the operator, clients and monitoring only. What the "
            "pods themselves reach (hub, DNS) stays free. It needs a network that enforces policies."
        ),
    )
    clients: Peers | None = Field(
        default=None,
        max_length=_MAX_PEERS,
        description=(
            "Who may ask the model, as peers of a NetworkPolicy. Default: all pods of this namespace. An empty list: "
            "nobody. Gateways and clients of other namespaces must be named here."
        ),
        json_schema_extra=field_extra(list_type="atomic"),
    )
    monitoring: Peers | None = Field(
        default=None,
        max_length=_MAX_PEERS,
        description=(
            "Who may read the metrics, as peers of a NetworkPolicy. Default: those that the chart's value "
            "networkPolicy.monitoring.from names. One port serves the model and its metrics, so they could ask the "
            "model, too."
        ),
        json_schema_extra=field_extra(list_type="atomic"),
    )
