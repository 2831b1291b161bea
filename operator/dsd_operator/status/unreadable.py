"""The status of a resource that `parse` refuses: one that is older, or newer, than the models of this operator."""

from collections.abc import Mapping, Sequence
from typing import Any

from dsd_operator.status.conditions import Condition, merge_conditions
from dsd_operator.status.reasons import ConditionType, Reason
from dsd_runtime.schedule import Problem


def unreadable(body: Mapping[str, Any], problems: Sequence[Problem], now: str) -> dict[str, Any]:
    """What stood there before, with every condition that nobody can judge now. The children are left as they are."""
    old = body.get("status") or {}
    generation = body["metadata"].get("generation", 0)
    message = "the operator cannot read this resource: " + "; ".join(f"{p.field}: {p.message}" for p in problems)
    conditions = [
        Condition(kind, "False" if kind is ConditionType.READY else "Unknown", Reason.INVALID_SPEC, message)
        for kind in ConditionType
    ]
    merged = merge_conditions(old.get("conditions") or [], conditions, generation, now)
    return {**old, "observedGeneration": generation, "conditions": merged}
