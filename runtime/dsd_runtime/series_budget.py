"""How many series one engine core may put on /metrics: PAGE_BYTES of text, whatever schedules come and go. Pure.

A schedule can name 128 K, a concurrency is one of 12 buckets, and series never go away while an engine runs: without a
bound, an engine whose schedule changes often would serve megabytes. `step_metrics` asks here before it makes a series.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dsd_runtime import catalogue
from dsd_runtime.catalogue import BY_K, OTHER, Family
from dsd_runtime.protocol import FAULT_SOURCES
from dsd_runtime.schedule import MAX_BATCH_SIZE, MAX_RANGES

PAGE_BYTES: Final = 60_000
"""Bound on the text of all dsd_ series of one engine core."""

VALUE_BYTES: Final = 18
"""Longest number of a sample: a float of 17 digits and its point, a count below 10^15."""

_UPDATES: Final = 12
"""Series of dsd_schedule_updates_total: two sources and six results at most."""


def cost(sample: str, labels: Mapping[str, str]) -> int:
    """Bytes of one line: name, labels, number, as prometheus_client writes it."""
    inner = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return len(f"{sample}{{{inner}}} \n".encode()) + VALUE_BYTES


def escaped(value: str) -> str:
    """A label's value as the text format has it."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def histogram_cost(family: Family, labels: Mapping[str, str], bounds: Sequence[float]) -> int:
    """Bytes of one child of a histogram."""
    buckets = sum(cost(f"{family.name}_bucket", {**labels, "le": str(float(bound))}) for bound in bounds)
    infinite = cost(f"{family.name}_bucket", {**labels, "le": "+Inf"})
    return buckets + infinite + cost(f"{family.name}_sum", labels) + cost(f"{family.name}_count", labels)


class SeriesBudget:
    """Room for series by K; everything else on the page is set aside first."""

    def __init__(
        self, labels: Mapping[str, str], positions: int, batch_sizes: Sequence[float], seconds: Sequence[float]
    ) -> None:
        """`positions` is how many draft positions have series, the others are the bounds of the two histograms."""
        self._labels = dict(labels)
        self._left = PAGE_BYTES - headers() - self._of_steps(positions) - self._of_schedules()
        self._left -= histogram_cost(catalogue.BATCH_SIZE, self._labels, batch_sizes)
        self._left -= histogram_cost(catalogue.STEP_DURATION, self._labels | {"k": OTHER}, seconds)

    def take(self, size: int) -> bool:
        """Whether there is room for `size` more bytes, which are then taken."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def _lines(self, families: Iterable[Family], **labels: str) -> int:
        return sum(cost(family.sample, self._labels | labels) for family in families)

    def _of_steps(self, positions: int) -> int:
        other = self._lines(catalogue.ROW, **dict.fromkeys(BY_K, OTHER))
        per_position = self._lines((catalogue.DRAFTED_PER_POS, catalogue.ACCEPTED_PER_POS), position="16+")
        return other + positions * per_position + self._lines((catalogue.CHANGES, catalogue.IN_USE))

    def _of_schedules(self) -> int:
        """The longest schedule, its revision and the plugin; a value of 24 bytes or a hash stands in each label."""
        word = "x" * 24
        size = str(MAX_BATCH_SIZE)
        ranges = MAX_RANGES * self._lines((catalogue.SCHEDULE_RANGE,), start=size, end=size)
        updates = _UPDATES * self._lines((catalogue.UPDATES,), source="start", result="unchanged")
        info = self._lines((catalogue.SCHEDULE_INFO,), revision=word, hash="x" * 64, source="start")
        plugin = self._lines((catalogue.PLUGIN,), **dict.fromkeys(catalogue.PLUGIN.extra, word))
        faults = len(FAULT_SOURCES) * self._lines((catalogue.FAULT,), source=word)
        return ranges + updates + info + plugin + faults


def headers() -> int:
    """Bytes of the HELP and TYPE lines."""
    return sum(len(f"# HELP {f.sample} {f.text}\n# TYPE {f.sample} {f.kind}\n".encode()) for f in catalogue.FAMILIES)
