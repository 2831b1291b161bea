"""Metrics: the buckets, the files of the multiprocess mode, and that series of old schedules vanish."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from dsd_runtime.metrics import MAX_BUCKETS, ScheduleMetrics, bucket_of, concurrency_bounds, position_label
from dsd_runtime.state import Active, Proposal
from tests.runtime.examples import ranges, revision

Series = dict[str, dict[str, float]]


def collected(folder: Path) -> Series:
    """What /metrics would show: name -> labels -> value."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    found: Series = {}
    for family in registry.collect():
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()) if k not in ("model_name", "engine"))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


@pytest.mark.parametrize(
    ("max_num_seqs", "bounds"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (100, (1, 2, 4, 8, 16, 32, 64, 100)),
        (256, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
        (1024, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        (2048, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)),
        (100_000, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 100_000)),
    ],
)
def test_bounds(max_num_seqs: int, bounds: tuple[int, ...]) -> None:
    assert concurrency_bounds(max_num_seqs) == bounds


@given(st.integers(1, 5000), st.data())
def test_every_batch_size_has_the_smallest_bucket_that_holds_it(max_num_seqs: int, data: st.DataObject) -> None:
    bounds = concurrency_bounds(max_num_seqs)
    size = data.draw(st.integers(1, max_num_seqs))
    bucket = bucket_of(size, bounds)
    assert len(bounds) <= MAX_BUCKETS
    assert size <= bucket
    assert all(bound < size for bound in bounds if bound < bucket)


def test_deep_positions_share_one_series() -> None:
    assert [position_label(p) for p in (0, 15, 16, 127)] == ["0", "15", "16+", "16+"]


STEPS = """
from dsd_runtime.metrics import StepMetrics, show_plugin
from dsd_runtime.outcome import StepOutcome
labels = {"model_name": "m", "engine": "0"}
metrics = StepMetrics(labels, max_num_seqs=16)
metrics.observe(StepOutcome(1, 3, 0, None, 1, 0, 0, (), ()))
metrics.observe(StepOutcome(3, 3, 3, 0.005, 8, 9, 5, (3, 3, 3), (3, 1, 1)))
metrics.observe(StepOutcome(4, 1, 3, None, 6, 6, 2, (2, 2, 2), (1, 1, 0)))
metrics.observe(StepOutcome(40, 0, 1, None, 40, 20, 0, (20,), (0,)))
depth = 18
metrics.observe(StepOutcome(1, 0, 18, None, 19, 18, 18, (1,) * depth, (1,) * depth))
show_plugin(labels, version="1", vllm_version="2", method="ngram", runner="V1", mode="on")
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Metrics of a few steps, made in a process of its own: the multiprocess mode is chosen at import."""
    folder = tmp_path_factory.mktemp("metrics")
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder), "PYTHONPATH": "runtime"}
    subprocess.run([sys.executable, "-c", STEPS], env=environment, check=True)
    return collected(folder)


def test_steps_go_to_the_verified_k_and_the_bucket(steps: Series) -> None:
    assert steps["dsd_steps_total"] == {
        "concurrency=1,k=0": 1,
        "concurrency=4,k=3": 2,
        "concurrency=16,k=1": 1,
        "concurrency=1,k=18": 1,
    }


def test_tokens(steps: Series) -> None:
    assert steps["dsd_emitted_tokens_total"]["concurrency=4,k=3"] == 14
    assert steps["dsd_draft_tokens_total"]["concurrency=4,k=3"] == 15
    assert steps["dsd_accepted_tokens_total"]["concurrency=4,k=3"] == 7


def test_seconds_only_where_a_step_has_a_price(steps: Series) -> None:
    assert sum(steps["dsd_step_seconds_total"].values()) == 0.005
    assert steps["dsd_step_duration_seconds_count"] == {"k=3": 1}


def test_positions(steps: Series) -> None:
    drafted, accepted = steps["dsd_draft_tokens_per_pos_total"], steps["dsd_accepted_tokens_per_pos_total"]
    assert sum(drafted.values()) == sum(steps["dsd_draft_tokens_total"].values())
    assert sum(accepted.values()) == sum(steps["dsd_accepted_tokens_total"].values())
    assert (drafted["position=0"], accepted["position=0"]) == (26, 5)
    assert (drafted["position=16+"], len(drafted)) == (2, 17)


def test_gauges(steps: Series) -> None:
    assert steps["dsd_num_speculative_tokens"] == {"": 0}
    assert list(steps["dsd_plugin_info"]) == ["method=ngram,mode=on,runner=V1,version=1,vllm_version=2"]


def test_no_series_carries_the_name_of_vllm(steps: Series) -> None:
    assert all(name.startswith("dsd_") for name in steps)


def test_series_of_an_old_schedule_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    metrics = ScheduleMetrics({"model_name": "m", "engine": "0"})
    for number in range(1, 50):
        new = Proposal(ranges((1, number, 3), (number + 1, 99, 1)), revision(number), "http")
        metrics.show(Active.of(new).describe())
    found = collected(tmp_path)
    assert found["dsd_schedule_num_speculative_tokens"] == {"end=49,start=1": 3, "end=99,start=50": 1}
    (info,) = found["dsd_schedule_revision_info"]
    assert "revision=49" in info
    assert len(list(tmp_path.iterdir())) == 1
