"""What shapes the pods around the engine: memory for workers, start-up time, roll-out."""

from typing import Any, ClassVar, Final

from pydantic import Field

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import (
    EMPTIED,
    MAX_INT32,
    QUANTITY_HINT,
    QUANTITY_SCHEMA,
    ApiModel,
    Quantity,
    field_extra,
    is_quantity,
)

_NOT_QUANTITY: Final = f"not a quantity: {QUANTITY_HINT}"


def _amount_rules() -> list[dict[str, str]]:
    """Rules on a map of resource names to quantities (`self`)."""
    fits, bad = is_quantity("self[k]"), "self.filter(k, !{})[0]"
    whole = f"(!k.contains('/') || type(self[k]) != string || !{fits} || quantity(self[k]).isInteger())"
    rules = (
        Rule(
            f"self.all(k, {fits})",
            _NOT_QUANTITY,
            f"{bad.format(fits)} + ' is {_NOT_QUANTITY}'",
        ),
        Rule(
            f"self.all(k, {whole})",
            "devices are counted whole: use an integer",
            f"{bad.format(whole)} + ': devices are counted whole, use an integer'",
        ),
    )
    return [rule.dump() for rule in rules]


def _amounts(description: str) -> dict[str, Any]:
    return {
        "type": "object",
        **EMPTIED,
        "description": description,
        "maxProperties": 32,
        "additionalProperties": QUANTITY_SCHEMA,
        "x-kubernetes-validations": _amount_rules(),
    }


RESOURCES_SCHEMA: Final = {
    "type": "object",
    **EMPTIED,
    "properties": {
        "limits": _amounts("Most of each resource the engine may use. Devices such as nvidia.com/gpu belong here."),
        "requests": _amounts("What is reserved for the engine. Default: the limits."),
        "claims": {
            "type": "array",
            "description": "Resource claims of the pod (podTemplate.spec.resourceClaims) that the engine uses.",
            "maxItems": 32,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "description": "One claim.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "Name of an entry of resourceClaims."},
                    "request": {"type": "string", "description": "One request of that claim. Default: all of them."},
                },
            },
        },
    },
}

_STRING_MAP: Final = {"type": "object", **EMPTIED, "additionalProperties": {"type": "string"}}

POD_TEMPLATE_SCHEMA: Final = {
    "type": "object",
    **EMPTIED,
    "properties": {
        "metadata": {
            "type": "object",
            **EMPTIED,
            "description": "Labels and annotations of the pods. The operator's own labels cannot be overridden.",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "labels": _STRING_MAP | {"description": "Further labels of the pods."},
                "annotations": _STRING_MAP | {"description": "Further annotations of the pods."},
            },
        },
        "spec": {
            "type": "object",
            **EMPTIED,
            "description": "Any field of a pod's spec, e.g. nodeSelector, tolerations, volumes, imagePullSecrets.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}


MAX_READY_SECONDS: Final = 600
"""Below every progress deadline, as a Deployment demands."""


class SharedMemory(ApiModel):
    """The memory-backed volume at /dev/shm."""

    size_limit: Quantity | None = Field(
        default=None,
        description=(
            "Upper limit of /dev/shm, which vLLM's worker processes talk through, e.g. 8Gi; it counts against the "
            "container's memory limit, which Kubernetes lowers it to. Default: 8Gi."
        ),
        json_schema_extra=field_extra(Rule(is_quantity("self"), _NOT_QUANTITY)),
    )


class Startup(ApiModel):
    """How long a pod may take to become ready for the first time."""

    timeout_seconds: int = Field(
        default=3600,
        ge=30,
        le=86400,
        description=(
            "Seconds from the container's start until it must serve; then the kubelet restarts it. Cover the download "
            "of the model, loading and graph capture."
        ),
    )


class Rollout(ApiModel):
    """How pods are replaced when something changes that needs a restart."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.maxSurge > 0 || self.maxUnavailable > 0",
            "maxSurge and maxUnavailable are both 0, so no pod could ever be replaced; raise one of them",
        ),
    )

    max_surge: int = Field(
        default=0,
        ge=0,
        le=MAX_INT32,
        description="Pods that may exist beyond replicas during a roll-out. Each needs free GPUs; 0 needs none.",
    )
    max_unavailable: int = Field(
        default=1,
        ge=0,
        le=MAX_INT32,
        description="Pods that may be missing during a roll-out. Not 0 together with maxSurge 0.",
    )
    min_ready_seconds: int = Field(
        default=5,
        ge=0,
        le=MAX_READY_SECONDS,
        description=(
            "Seconds that a new pod must have been ready before the next one is replaced: some engines crash on their "
            "first requests."
        ),
    )
    drain_timeout_seconds: int = Field(
        default=30,
        ge=0,
        le=86400,
        description=(
            "Seconds that running requests may take to end when a pod is replaced, deleted or its node is drained; "
            "0 aborts them at once. Cover the longest generation. The pod gets 35 seconds more, to leave the Service "
            "before and to end itself after. Changing it restarts the pods, for it is part of them."
        ),
    )
    restarted_at: str | None = Field(
        default=None,
        max_length=64,
        description=(
            "Any other time than before replaces all pods as this section says, and renders them by the operator's "
            "present version: what `kubectl dsd rollout restart` sets."
        ),
        json_schema_extra={"format": "date-time"},
    )
