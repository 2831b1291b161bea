"""Labels and annotations that users give to children: what Kubernetes takes, and what stays the operator's own."""

from typing import Any, Final

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import EMPTIED

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
KEY: Final = f"^({_DNS_LABEL}([.]{_DNS_LABEL})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
VALUE: Final = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
_OWNED: Final = "k in ['app.kubernetes.io/name', 'app.kubernetes.io/managed-by', 'dsd-operator.io/deployment']"
_OWN_PREFIX: Final = "k.startsWith('dsd-operator.io/')"
_MAX_ANNOTATION: Final = 4096
"""Characters of an annotation's value: room for any load balancer's settings, and bounded for CEL."""


def _key_rule(what: str) -> Rule:
    return Rule(
        f"self.all(k, k.matches('{KEY}'))",
        f"not {what} name",
        f"self.filter(k, !k.matches('{KEY}'))[0] + ' is not {what} name'",
    )


def _owned_rule(owned: str, what: str) -> Rule:
    return Rule(
        f"!self.exists(k, {owned})",
        f"this {what} belongs to the operator; choose another one",
        f"self.filter(k, {owned})[0] + ' belongs to the operator; choose another {what}'",
    )


def _map(values: dict[str, Any], *rules: Rule) -> dict[str, Any]:
    return {
        "type": "object",
        **EMPTIED,
        "maxProperties": 16,
        "additionalProperties": {"type": "string", **values},
        "x-kubernetes-validations": [rule.dump() for rule in rules],
    }


LABELS_SCHEMA: Final = _map({"maxLength": 63, "pattern": VALUE}, _key_rule("a label"), _owned_rule(_OWNED, "label"))
"""Labels beside the operator's own."""

ANNOTATIONS_SCHEMA: Final = _map(
    {"maxLength": _MAX_ANNOTATION}, _key_rule("an annotation"), _owned_rule(_OWN_PREFIX, "annotation")
)
"""Annotations; those of the operator's own group are kept free."""
