"""What the operator's benchmark must show, computed from its `data`. Pure."""

from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench.results import Required, spread

LATER_SECONDS: Final = 0.25
"""How much later, at most, the pods beside a slow and a dead one get the schedule: a quarter of the second for which a
pass waits for a pod; the slow one itself takes five."""

OTHERS_RATIO: Final = 1.25
"""The same where many are changed at once, whose medians are seconds: as a ratio."""


def required_of(data: Sequence[dict[str, Any]]) -> tuple[Required, ...]:
    """Every number that is asked for."""
    resync = _one(data, "start", "resync")["samples"]
    writes = _one(data, "requests per", "full resync")["writes"]
    memory = _one(data, "memory", "peak")["megabytes"]
    changes = [row for row in data if "change" in row]
    return (
        Required.of("writes of a full resync without changes", writes["max"], "requests", "<=", 0),
        Required.of("full resync of all", max(resync), "s", "<=", 60),
        Required.of("resident memory, peak", memory["max"], "MB", "<=", 300),
        *_acknowledged(changes[:2]),
        _undelayed(changes[2:]),
    )


def _acknowledged(rows: Sequence[dict[str, Any]]) -> tuple[Required, ...]:
    plain, faulty = (spread(row["samples"])["p95"] for row in rows)
    what = rows[0]["change"]
    return (
        Required.of(f"p95, {what}: last acknowledgement", plain, "s", "<=", 3),
        Required.of(f"p95, {what}, beside a slow and a dead pod", faulty, "s", "<=", 3),
        Required.of(f"median, {what}: later beside a slow and a dead pod", _later(rows), "s", "<=", LATER_SECONDS),
    )


def _later(rows: Sequence[dict[str, Any]]) -> float:
    plain, faulty = (float(median(row["samples"])) for row in rows)
    return max(0.0, faulty - plain)


def _undelayed(rows: Sequence[dict[str, Any]]) -> Required:
    plain, faulty = (median(row["samples"]) for row in rows)
    name = f"median, {rows[0]['change']}: beside a slow and a dead pod / without"
    return Required.of(name, faulty / plain, "ratio", "<=", OTHERS_RATIO)


def _one(data: Sequence[dict[str, Any]], key: str, value: str) -> dict[str, Any]:
    return next(row for row in data if row.get(key) == value)
