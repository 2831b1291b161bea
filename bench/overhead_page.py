"""The largest dsd_ page that one engine core can have: every K at every concurrency, the longest schedule."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dsd_runtime.faults import Faults
from dsd_runtime.metrics import ScheduleMetrics, show_plugin
from dsd_runtime.outcome import StepOutcome
from dsd_runtime.protocol import Revision
from dsd_runtime.schedule import MAX_BATCH_SIZE, MAX_RANGES, from_triples
from dsd_runtime.state import Active, Proposal, Result
from dsd_runtime.step_metrics import StepMetrics

LONG_NAME: Final = "/models/long-organisation-name/" + "Very-Long-Model-Name-With-Size-And-Quantization-" * 2
"""127 characters; a name on the Hugging Face hub has 96 at most, in each of its two parts."""

SECONDS: Final = 2.0**40 + 1 / 3
"""A number as long as floats get."""

EMITTED: Final = 10**12
DRAFTED: Final = 10**9
"""Tokens of one step, as after years."""


def step(k: int, batch_size: int) -> StepOutcome:
    """A step that touches every series of its K and batch size."""
    drafts = (DRAFTED,) * k
    return StepOutcome(batch_size, k, k, SECONDS, EMITTED, k * DRAFTED, k * DRAFTED, drafts, drafts)


def page(folder: Path, name: str, tokens: Iterable[int], batch_sizes: Iterable[int], max_num_seqs: int) -> str:
    """All that one engine core shows after a step with each K and batch size.

    `folder` must be empty, and what PROMETHEUS_MULTIPROC_DIR says.
    """
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    labels = {"model_name": name, "engine": "0"}
    tokens = sorted(tokens)
    metrics = StepMetrics(labels, max_num_seqs, tokens[-1])
    for k in tokens:
        for size in batch_sizes:
            metrics.observe(step(k, size))
    metrics.flush()
    _show_the_longest(labels)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return generate_latest(registry).decode()


def _show_the_longest(labels: dict[str, str]) -> None:
    """Schedule, updates, plugin and faults, each at its longest."""
    schedules = ScheduleMetrics(labels)
    for source in ("file", "http"):
        for result in Result:
            schedules.count_update(source, result)
    edges = [MAX_BATCH_SIZE - MAX_RANGES + n for n in range(MAX_RANGES)]
    ranges = from_triples(((1, edges[0], 9), *((a, a, 90 + n) for n, a in enumerate(edges[1:]))))
    schedules.show(Active.of(Proposal(ranges, Revision(owner="o", number=2**53 - 1), "start")).shown)
    versions = {"version": "10.20.30.dev40", "vllm_version": "10.20.30.post40+cu130"}
    show_plugin(labels, **versions, method="extract_hidden_states", runner="V2", mode="on")
    Faults(labels)
