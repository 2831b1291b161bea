"""What a check finds. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any


class Weight(IntEnum):
    """How much it matters; the heaviest is told first."""

    INFO = 0
    WARNING = 1
    """It works, and something is wrong all the same."""
    ERROR = 2
    """It keeps the deployment from being Ready."""


@dataclass(frozen=True)
class Finding:
    """One cause. `reason` is that of docs/reference/conditions.md where there is one.

    `cause` and `fix` are for people and name no pod, so that several pods with one trouble are told once; `objects` are
    where it was seen, as `Kind name`; `said` are the words of those who noticed.
    """

    weight: Weight
    reason: str
    cause: str
    fix: str = ""
    objects: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        return {
            "weight": self.weight.name.lower(),
            "reason": self.reason,
            "cause": self.cause,
            "fix": self.fix or None,
            "objects": list(self.objects),
            "said": list(self.said),
        }


def error(reason: str, cause: str, fix: str, *objects: str, said: Iterable[str] = ()) -> Finding:
    """Something that keeps the deployment from being Ready."""
    return Finding(Weight.ERROR, reason, cause, fix, objects, tuple(text for text in said if text))


def warning(reason: str, cause: str, fix: str, *objects: str, said: Iterable[str] = ()) -> Finding:
    """Something that is wrong while the deployment works."""
    return Finding(Weight.WARNING, reason, cause, fix, objects, tuple(text for text in said if text))


def info(reason: str, cause: str, fix: str = "", *objects: str, said: Iterable[str] = ()) -> Finding:
    """Something to know."""
    return Finding(Weight.INFO, reason, cause, fix, objects, tuple(text for text in said if text))


def together(findings: Iterable[Finding]) -> list[Finding]:
    """The heaviest first; the same cause seen at several objects is one."""
    merged: dict[tuple[str, str], Finding] = {}
    for found in findings:
        known = merged.get((found.reason, found.cause))
        if known is None:
            merged[found.reason, found.cause] = found
        else:
            objects = tuple(dict.fromkeys((*known.objects, *found.objects)))
            said = tuple(dict.fromkeys((*known.said, *found.said)))
            merged[found.reason, found.cause] = replace(known, objects=objects, said=said)
    return sorted(merged.values(), key=lambda found: -found.weight)
