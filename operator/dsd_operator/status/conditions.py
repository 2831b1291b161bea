"""Conditions in the form of the Kubernetes API conventions, and the rule for lastTransitionTime."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dsd_operator.status.reasons import ConditionType, Reason

Status = Literal["True", "False", "Unknown"]

MAX_MESSAGE: Final = 4096
"""Characters of a condition's message; the API conventions allow 32768, people read the first lines."""


@dataclass(frozen=True)
class Condition:
    """One condition before it has a time."""

    type: ConditionType
    status: Status
    reason: Reason
    message: str


def condition_of(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of this type in the status of any object; empty where it has none."""
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})


def merge_conditions(
    old: Iterable[Mapping[str, Any]], new: Iterable[Condition], generation: int, now: str
) -> list[dict[str, Any]]:
    """`new` as the status carries it; `now` (RFC 3339, in UTC) becomes lastTransitionTime only where the status
    changed, and only if it is later: a clock that was set back does not put a change before the one it follows."""
    before = {condition.get("type"): condition for condition in old}
    return [_dump(condition, before.get(condition.type), generation, now) for condition in new]


def _dump(condition: Condition, old: Mapping[str, Any] | None, generation: int, now: str) -> dict[str, Any]:
    since = str((old or {}).get("lastTransitionTime") or "")
    unchanged = old is not None and old.get("status") == condition.status
    return {
        "type": condition.type.value,
        "status": condition.status,
        "reason": condition.reason.value,
        "message": shorten(condition.message, MAX_MESSAGE),
        "observedGeneration": generation,
        "lastTransitionTime": since if since and unchanged else max(now, since),
    }


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the cut marked."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
