"""`spec.monitoring`: what Prometheus is told of the engines. Nothing of it is in the envelope: no pod ever rolls."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from dsd_operator.api.common import EMPTIED, ApiModel
from dsd_operator.api.labels import LABELS_SCHEMA


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
    labels: Annotated[dict[str, str], WithJsonSchema(LABELS_SCHEMA)] = Field(
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
