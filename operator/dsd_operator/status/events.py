"""Which Kubernetes Events a change of status deserves: transitions only, so that a steady state stays silent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dsd_operator.status.conditions import shorten
from dsd_operator.status.reasons import ON_THE_WAY, ConditionType, Reason

_MAX_MESSAGE: Final = 1024
"""Limit of an Event's message in the API."""

_GOOD: Final = frozenset({Reason.ROLLED_OUT.value, Reason.SCALED_TO_ZERO.value})
"""Reasons of conditions that are False and still nothing to warn about."""


@dataclass(frozen=True)
class Event:
    """What one Event says; who posts it adds the object and the time."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def transitions(old_status: Mapping[str, Any], new_status: Mapping[str, Any]) -> list[Event]:
    """One Event for each condition whose status or reason changed, equal ones once.

    A schedule that replaces another leaves its condition True, and is told all the same.
    """
    before = {c.get("type"): c for c in old_status.get("conditions") or []}
    changed_schedule = _hash(old_status) != _hash(new_status)
    found = []
    for condition in new_status.get("conditions") or []:
        old = before.get(condition["type"], {})
        moved = (old.get("status"), old.get("reason")) != (condition["status"], condition["reason"])
        swapped = condition["type"] == ConditionType.SCHEDULE_APPLIED and changed_schedule
        if moved or swapped:
            found.append(_event(condition))
    return list(dict.fromkeys(found))


def _hash(status: Mapping[str, Any]) -> object:
    return (status.get("schedule") or {}).get("hash")


def _event(condition: Mapping[str, Any]) -> Event:
    kind, reason = condition["type"], condition["reason"]
    on_the_way = kind == ConditionType.PROGRESSING and condition["status"] == "True"
    fine = condition["status"] == "True" or on_the_way or reason in _GOOD or _is_starting(condition)
    fine = fine and reason != Reason.SYNTHETIC_ACCEPTANCE
    return Event("Normal" if fine else "Warning", reason, shorten(condition["message"], _MAX_MESSAGE))


def _is_starting(condition: Mapping[str, Any]) -> bool:
    return condition["reason"] in ON_THE_WAY
