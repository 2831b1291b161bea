"""What the operator's benchmark must show, computed from its `data`. Pure."""

from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench.results import Required, spread

OTHERS_RATIO: Final = 1.25
"""How much later, at most, the pods beside a slow and a dead one get the schedule, as a ratio of medians: a delay by
the slow pod would be seconds, the rest is noise."""


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
        _undelayed(rows),
    )


def _undelayed(rows: Sequence[dict[str, Any]]) -> Required:
    plain, faulty = (median(row["samples"]) for row in rows)
    name = f"median, {rows[0]['change']}: beside a slow and a dead pod / without"
    return Required.of(name, faulty / plain, "ratio", "<=", OTHERS_RATIO)


def _one(data: Sequence[dict[str, Any]], key: str, value: str) -> dict[str, Any]:
    return next(row for row in data if row.get(key) == value)
