"""What the steps of one engine core did, as `dsd_*` series.

`engine` feeds it a `StepOutcome` per step. Counting is an addition in memory; the files that /metrics is made of follow
every FLUSH_SECONDS, and at once where the engine falls idle, so that the totals of an idle engine are exact.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from dsd_runtime import catalogue
from dsd_runtime.catalogue import BY_K, OTHER, Family
from dsd_runtime.multiproc import Histogram, SeriesFile, Slot
from dsd_runtime.outcome import MAX_POSITIONS, StepOutcome
from dsd_runtime.series_budget import SeriesBudget, cost, histogram_cost

MAX_BUCKETS: Final = 12
FLUSH_SECONDS: Final = 0.2
STEP_SECONDS_BUCKETS: Final = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 2.5)

Row = tuple[Slot, Slot, Slot, Slot, Slot]


def concurrency_bounds(max_num_seqs: int) -> tuple[int, ...]:
    """Upper bounds of the concurrency buckets: powers of two below `max_num_seqs`, then `max_num_seqs`; at most 12."""
    powers: list[int] = []
    while len(powers) < MAX_BUCKETS - 1 and 2 ** len(powers) < max_num_seqs:
        powers.append(2 ** len(powers))
    return (*powers, max_num_seqs)


def bucket_of(batch_size: int, bounds: Sequence[int]) -> int:
    """The smallest bound that holds `batch_size`; the last one for anything larger."""
    return next((bound for bound in bounds if batch_size <= bound), bounds[-1])


def position_label(position: int) -> str:
    """Label of a draft position, counted from 0 as vLLM does; the deep ones share one."""
    return str(position) if position < MAX_POSITIONS else f"{MAX_POSITIONS}+"


class StepMetrics:
    """Counters and histograms of the steps.

    However many K are used in the life of an engine, the page stays bounded: a K, or a pair of K and concurrency, that
    `SeriesBudget` has no room for is counted under `k="other"`, so that every total stays exact.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        max_num_seqs: int,
        max_tokens: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_tokens` is the largest K this engine can use; `clock` gives seconds."""
        self._labels = dict(labels)
        self._clock = clock
        self._flushed = clock()
        self._bounds = concurrency_bounds(max_num_seqs)
        self._buckets = [str(bucket_of(size, self._bounds)) for size in range(max_num_seqs + 1)]
        engine = labels["engine"]
        self._counters, self._histograms = SeriesFile("counter", engine), SeriesFile("histogram", engine)
        self._gauges = SeriesFile("gauge_mostrecent", engine)
        self._budget = SeriesBudget(
            self._labels, min(max_tokens, MAX_POSITIONS + 1), self._bounds, STEP_SECONDS_BUCKETS
        )
        self._rows: dict[tuple[int, str], Row] = {}
        self._other_row: Row | None = None
        self._durations: dict[int, Histogram] = {}
        self._other_duration: Histogram | None = None
        self._positions: list[tuple[Slot, Slot]] = []
        self._batch_size = Histogram(self._histograms, catalogue.BATCH_SIZE, self._labels, self._bounds)
        self._changes = self._counter(catalogue.CHANGES)
        self._in_use: Slot | None = None

    def _counter(self, family: Family, **labels: str) -> Slot:
        return self._counters.slot(family, family.sample, self._labels | labels)

    def observe(self, step: StepOutcome) -> None:
        """Count one step."""
        bucket = self._buckets[min(step.batch_size, len(self._buckets) - 1)]
        row = self._rows.get((step.verified, bucket)) or self._new_row(step.verified, bucket)
        row[0].value += 1
        row[2].value += step.emitted_tokens
        if step.seconds is not None:
            row[1].value += step.seconds
            (self._durations.get(step.verified) or self._new_duration(step.verified)).observe(step.seconds)
        if step.draft_tokens:
            row[3].value += step.draft_tokens
            row[4].value += step.accepted_tokens
            self._observe_positions(step)
        self._batch_size.observe(step.batch_size)
        self._observe_chosen(step.chosen)
        if self._clock() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring the files up to date."""
        self._flushed = self._clock()
        for file in (self._counters, self._histograms, self._gauges):
            file.flush()

    def _observe_chosen(self, chosen: int) -> None:
        if self._in_use is None:
            self._in_use = self._gauges.slot(catalogue.IN_USE, catalogue.IN_USE.sample, self._labels)
        elif chosen != self._in_use.value:
            self._changes.value += 1
        self._in_use.value = chosen

    def _observe_positions(self, step: StepOutcome) -> None:
        drafted, accepted = step.draft_tokens_per_pos, step.accepted_tokens_per_pos
        shown = min(len(drafted), MAX_POSITIONS + 1)
        while len(self._positions) < shown:
            label = position_label(len(self._positions))
            pair = (catalogue.DRAFTED_PER_POS, catalogue.ACCEPTED_PER_POS)
            self._positions.append((self._counter(pair[0], position=label), self._counter(pair[1], position=label)))
        for (draft, accept), tokens, taken in zip(self._positions, drafted, accepted, strict=False):
            draft.value += tokens
            accept.value += taken
        if len(drafted) > shown:
            draft, accept = self._positions[-1]
            draft.value += sum(islice(drafted, shown, None))
            accept.value += sum(islice(accepted, shown, None))

    def _new_row(self, k: int, bucket: str) -> Row:
        labels = {"k": str(k), "concurrency": bucket}
        if self._budget.take(sum(cost(family.sample, self._labels | labels) for family in catalogue.ROW)):
            row = self._rows[k, bucket] = self._make_row(labels)
            return row
        if self._other_row is None:
            self._other_row = self._make_row(dict.fromkeys(BY_K, OTHER))
        self._rows[k, bucket] = self._other_row
        return self._other_row

    def _make_row(self, labels: Mapping[str, str]) -> Row:
        steps, seconds, emitted, drafted, accepted = (self._counter(family, **labels) for family in catalogue.ROW)
        return steps, seconds, emitted, drafted, accepted

    def _new_duration(self, k: int) -> Histogram:
        labels = self._labels | {"k": str(k)}
        if self._budget.take(histogram_cost(catalogue.STEP_DURATION, labels, STEP_SECONDS_BUCKETS)):
            child = self._make_duration(labels)
        else:
            child = self._other_duration = self._other_duration or self._make_duration(self._labels | {"k": OTHER})
        self._durations[k] = child
        return child

    def _make_duration(self, labels: Mapping[str, str]) -> Histogram:
        return Histogram(self._histograms, catalogue.STEP_DURATION, labels, STEP_SECONDS_BUCKETS)
