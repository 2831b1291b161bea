"""The `dsd_*` series of one engine core.

They are made in the engine-core process and reach /metrics of the API server through prometheus_client's multiprocess
directory: no transport of our own, no private interface of vLLM. `engine` feeds it `StepOutcome`s and schedules.
Never a `vllm:` name: vLLM removes every collector that carries one.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dsd_runtime import __version__, compat
from dsd_runtime.outcome import MAX_POSITIONS, StepOutcome
from dsd_runtime.protocol import ScheduleState

MAX_BUCKETS: Final = 12
STEP_SECONDS_BUCKETS: Final = (
    0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
LABELS: Final = ("model_name", "engine")
MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"


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
    """Counters and histograms of the steps. The children are looked up once for each pair of labels, not per step."""

    def __init__(self, labels: Mapping[str, str], max_num_seqs: int) -> None:
        """Create the collectors; PROMETHEUS_MULTIPROC_DIR must be set before prometheus_client is imported at all."""
        from prometheus_client import Counter, Gauge, Histogram

        self._labels = dict(labels)
        bounds = concurrency_bounds(max_num_seqs)
        self._buckets = [str(bucket_of(size, bounds)) for size in range(max_num_seqs + 1)]

        def counter(name: str, text: str, *extra: str) -> Any:
            return Counter(name, text, (*LABELS, *extra))

        by_k = ("k", "concurrency")
        self._per_k = (
            counter("dsd_steps", "Steps by verified K and batch size", *by_k),
            counter("dsd_step_seconds", "Seconds of decode-only steps whose chosen and verified K agree", *by_k),
            counter("dsd_emitted_tokens", "Tokens handed to clients", *by_k),
            counter("dsd_draft_tokens", "Draft tokens that were verified", *by_k),
            counter("dsd_accepted_tokens", "Draft tokens that were accepted", *by_k),
        )
        self._draft_per_pos = counter("dsd_draft_tokens_per_pos", "Draft tokens by position", "position")
        self._accepted_per_pos = counter("dsd_accepted_tokens_per_pos", "Accepted tokens by position", "position")
        self._duration = Histogram(
            "dsd_step_duration_seconds", "Duration of the steps in dsd_step_seconds", (*LABELS, "k"),
            buckets=STEP_SECONDS_BUCKETS,
        )  # fmt: skip
        batch_size = Histogram("dsd_step_batch_size", "Requests scheduled in a step", LABELS, buckets=bounds)
        self._batch_size = batch_size.labels(**labels)
        in_use = Gauge("dsd_num_speculative_tokens", "K in use now", LABELS, multiprocess_mode="mostrecent")
        self._in_use = in_use.labels(**labels)
        self._last_chosen = -1
        self._children: dict[tuple[int, str], tuple[Any, ...]] = {}
        self._durations: dict[int, Any] = {}
        self._positions: dict[int, tuple[Any, Any]] = {}

    def observe(self, step: StepOutcome) -> None:
        """Count one step."""
        bucket = self._buckets[min(step.batch_size, len(self._buckets) - 1)]
        values = (1, step.seconds, step.emitted_tokens, step.draft_tokens, step.accepted_tokens)
        for child, value in zip(self._for(step.verified, bucket), values, strict=True):
            if value:
                child.inc(value)
        self._batch_size.observe(step.batch_size)
        if step.seconds is not None:
            self._duration_of(step.verified).observe(step.seconds)
        if step.draft_tokens:
            self._observe_positions(step)
        if step.chosen != self._last_chosen:
            self._last_chosen = step.chosen
            self._in_use.set(step.chosen)

    def _observe_positions(self, step: StepOutcome) -> None:
        for position, drafted in enumerate(step.draft_tokens_per_pos):
            if not drafted:
                break
            draft, accept = self._position(position)
            draft.inc(drafted)
            if accepted := step.accepted_tokens_per_pos[position]:
                accept.inc(accepted)

    def _for(self, k: int, bucket: str) -> tuple[Any, ...]:
        children = self._children.get((k, bucket))
        if children is None:
            children = tuple(c.labels(**self._labels, k=str(k), concurrency=bucket) for c in self._per_k)
            self._children[k, bucket] = children
        return children

    def _duration_of(self, k: int) -> Any:
        child = self._durations.get(k)
        if child is None:
            child = self._durations[k] = self._duration.labels(**self._labels, k=str(k))
        return child

    def _position(self, position: int) -> tuple[Any, Any]:
        children = self._positions.get(position)
        if children is None:
            label = position_label(position)
            children = (
                self._draft_per_pos.labels(**self._labels, position=label),
                self._accepted_per_pos.labels(**self._labels, position=label),
            )
            self._positions[position] = children
        return children


class ScheduleMetrics:
    """The schedule in use and its changes.

    The series of a schedule must vanish with it, and prometheus_client cannot remove a series in multiprocess mode.
    They therefore have a gauge file of their own in the multiprocess directory, which is replaced whole on each change.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        from prometheus_client import Counter

        self._labels = dict(labels)
        self._updates = Counter("dsd_schedule_updates", "Proposed schedules", (*LABELS, "source", "result"))

    def count_update(self, source: str, result: str) -> None:
        """Count one proposed schedule."""
        self._updates.labels(**self._labels, source=source, result=result).inc()

    def show(self, schedule: ScheduleState) -> None:
        """Replace the series of the schedule in use. Without the multiprocess directory there is nowhere to show it."""
        revision = str(schedule.revision.number) if schedule.revision else ""
        info = {"revision": revision, "hash": schedule.hash, "source": schedule.source}
        series = [("dsd_schedule_revision_info", "Schedule in use", self._labels | info, 1.0)]
        for r in schedule.ranges:
            bounds = {"start": str(r.start_batch_size), "end": str(r.end_batch_size)}
            text = "K of one range of the schedule in use"
            series.append(
                ("dsd_schedule_num_speculative_tokens", text, self._labels | bounds, float(r.num_speculative_tokens))
            )
        if folder := os.environ.get(MULTIPROC_DIR):
            write_gauges(Path(folder) / f"gauge_mostrecent_dsd-{self._labels['engine']}.db", series)


def write_gauges(path: Path, series: Sequence[tuple[str, str, Mapping[str, str], float]]) -> None:
    """Write (name, help, labels, value) as a gauge file of prometheus_client's multiprocess mode, in one step."""
    from prometheus_client import mmap_dict

    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    values: Any = mmap_dict.MmapedDict(str(partial))  # type: ignore[no-untyped-call]
    now = time.time()
    for name, text, labels, value in series:
        values.write_value(mmap_dict.mmap_key(name, name, list(labels), list(labels.values()), text), value, now)
    values.close()
    partial.replace(path)


def show_plugin(labels: Mapping[str, str], **info: str) -> None:
    """Export `dsd_plugin_info` with version, vllm_version, method, runner and mode."""
    from prometheus_client import Gauge

    names = ("version", "vllm_version", "method", "runner", "mode")
    gauge = Gauge("dsd_plugin_info", "The DSD runtime plugin", (*LABELS, *names), multiprocess_mode="mostrecent")
    gauge.labels(**labels, **info).set(1)


def show_off(labels: Mapping[str, str]) -> None:
    """Export `dsd_plugin_info` of an engine whose schedule changes only with a restart."""
    show_plugin(
        labels, version=__version__, vllm_version=compat.gate().vllm_version, method="", runner="", mode="off"
    )
