"""`spec.monitoring`: what Prometheus is told of the engines. Nothing of it is in the envelope: no pod ever rolls."""

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import EMPTIED, ApiModel

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY: Final = f"^({_DNS_LABEL}([.]{_DNS_LABEL})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_LABEL_VALUE: Final = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
_OWNED: Final = "k in ['app.kubernetes.io/name', 'app.kubernetes.io/managed-by', 'dsd-operator.io/deployment']"

_LABEL_RULES: Final = (
    Rule(
        f"self.all(k, k.matches('{_LABEL_KEY}'))",
        "not a label name",
        f"self.filter(k, !k.matches('{_LABEL_KEY}'))[0] + ' is not a label name'",
    ),
    Rule(
        f"!self.exists(k, {_OWNED})",
        "this label belongs to the operator; choose another one",
        f"self.filter(k, {_OWNED})[0] + ' belongs to the operator; choose another label'",
    ),
)

_LABELS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    **EMPTIED,
    "maxProperties": 16,
    "additionalProperties": {"type": "string", "maxLength": 63, "pattern": _LABEL_VALUE},
    "x-kubernetes-validations": [rule.dump() for rule in _LABEL_RULES],
}


class PodMonitor(ApiModel):
    """The PodMonitor beside the pods."""

    enabled: bool = Field(
        default=False,
        description=(
            "Make a PodMonitor, by which a Prometheus of the Prometheus operator finds the pods. Where that operator's "
            "CRDs are not installed, the condition Ready says so, and pods and schedule go on."
        ),
    )
    interval: str | None = Field(
        default=None,
        min_length=2,
        max_length=16,
        pattern=r"^([1-9][0-9]*m)?([1-9][0-9]*s)?$",
        description="Time between two scrapes in minutes and seconds, e.g. 15s or 1m30s. Default: that of Prometheus.",
    )
    labels: Annotated[dict[str, str], WithJsonSchema(_LABELS_SCHEMA)] = Field(
        default_factory=dict,
        description=(
            "Labels of the PodMonitor, by which a Prometheus selects it, e.g. release: kube-prometheus-stack. The "
            "operator's own labels are always there."
        ),
    )


class Monitoring(ApiModel):
    """What Prometheus is told of the engines."""

    pod_monitor: PodMonitor = Field(
        default_factory=PodMonitor,
        description="A PodMonitor for the pods of this resource.",
        json_schema_extra=dict(EMPTIED),
    )
