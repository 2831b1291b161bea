"""`spec.podDisruptionBudget`: how many pods may go at once when nodes are drained. No pod ever rolls for it."""

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import MAX_INT32, ApiModel

_AMOUNT_RULE: Final = Rule(
    f"type(self) == int ? self >= 1 && self <= {MAX_INT32} : self.matches('^([1-9][0-9]?|100)%$')",
    "a number of pods from 1, or a share such as 25%: at 0 no node with one of these pods could ever be drained",
)
_AMOUNT_SCHEMA: Final[dict[str, Any]] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 4,
    "x-kubernetes-validations": [_AMOUNT_RULE.dump()],
}


class PodDisruptionBudget(ApiModel):
    """The PodDisruptionBudget beside the pods."""

    enabled: bool = Field(
        default=True,
        description=(
            "Make a PodDisruptionBudget: drains of nodes (upgrades, autoscalers) take no more pods at once than "
            "maxUnavailable. Pods that are not ready can always be evicted, so no drain waits for an engine that does "
            "not start."
        ),
    )
    max_unavailable: Annotated[int | str, WithJsonSchema(_AMOUNT_SCHEMA)] = Field(
        default=1,
        description=(
            "Pods that may be missing because of evictions, as a number from 1 or as a share of replicas, e.g. 25%. "
            "With one replica a drain takes it; with two, one after the other."
        ),
    )
