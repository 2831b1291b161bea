"""Metrics: the buckets, the files of the multiprocess mode, and that series of old schedules vanish."""

import errno
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from dsd_runtime.metrics import ScheduleMetrics, show_off, show_plugin
from dsd_runtime.outcome import StepOutcome
from dsd_runtime.state import Active, Proposal, Result
from dsd_runtime.step_metrics import MAX_BUCKETS, StepMetrics, bucket_of, concurrency_bounds, position_label
from tests.runtime.examples import ranges, revision

Series = dict[str, dict[str, float]]


def registry(folder: Path) -> CollectorRegistry:
    """What the API server collects from."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry


def collected(folder: Path) -> Series:
    """What /metrics would show: name -> labels -> value."""
    found: Series = {}
    for family in registry(folder).collect():
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


LABELS = {"model_name": "m", "engine": "0"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The multiprocess directory."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def steps(folder: Path) -> Series:
    """Metrics of a few steps."""
    metrics = StepMetrics(LABELS, max_num_seqs=16, max_tokens=20)
    metrics.observe(StepOutcome(1, 3, 0, None, 1, 0, 0, (), ()))
    metrics.observe(StepOutcome(3, 3, 3, 0.005, 8, 9, 5, (3, 3, 3), (3, 1, 1)))
    metrics.observe(StepOutcome(4, 1, 3, None, 6, 6, 2, (2, 2, 2), (1, 1, 0)))
    metrics.observe(StepOutcome(40, 0, 1, None, 40, 20, 0, (20,), (0,)))
    depth = 18
    metrics.observe(StepOutcome(1, 0, 18, None, 19, 18, 18, (1,) * depth, (1,) * depth))
    metrics.flush()
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


def test_changes_of_k_are_counted(steps: Series) -> None:
    """K was 3, 3, 1, 0, 0."""
    assert steps["dsd_num_speculative_tokens_changes_total"] == {"": 2}


def test_batch_sizes_and_durations_are_in_their_buckets(steps: Series) -> None:
    assert steps["dsd_step_batch_size_bucket"] == {
        "le=1.0": 2, "le=2.0": 2, "le=4.0": 4, "le=8.0": 4, "le=16.0": 4, "le=+Inf": 5,
    }  # fmt: skip
    assert (steps["dsd_step_batch_size_sum"], steps["dsd_step_batch_size_count"]) == ({"": 49}, {"": 5})
    assert steps["dsd_step_duration_seconds_bucket"]["k=3,le=0.005"] == 1, "a bound holds what equals it"
    assert steps["dsd_step_duration_seconds_bucket"]["k=3,le=0.0025"] == 0


def test_no_series_carries_the_name_of_vllm(steps: Series) -> None:
    assert all(name.startswith("dsd_") for name in steps)


def test_series_of_an_old_schedule_vanish(folder: Path) -> None:
    metrics = ScheduleMetrics(LABELS)
    for number in range(1, 50):
        new = Proposal(ranges((1, number, 3), (number + 1, 99, 1)), revision(number), "http")
        metrics.show(Active.of(new).shown)
    found = collected(folder)
    assert found["dsd_schedule_num_speculative_tokens"] == {"end=49,start=1": 3, "end=99,start=50": 1}
    (info,) = found["dsd_schedule_revision_info"]
    assert "revision=49" in info
    assert len(list(folder.glob("gauge*"))) == 1


def test_updates_are_counted_at_once(folder: Path) -> None:
    metrics = ScheduleMetrics(LABELS)
    for result in (Result.APPLIED, Result.STALE, Result.APPLIED):
        metrics.count_update("http", result)
    assert collected(folder)["dsd_schedule_updates_total"] == {
        "result=applied,source=http": 2,
        "result=stale,source=http": 1,
    }


def test_plugin_that_failed_no_longer_says_that_it_is_on(folder: Path) -> None:
    show_plugin(LABELS, version="1", vllm_version="2", method="ngram", runner="V1", mode="on")
    assert list(collected(folder)["dsd_plugin_info"]) == ["method=ngram,mode=on,runner=V1,version=1,vllm_version=2"]
    show_off(LABELS)
    (off,) = collected(folder)["dsd_plugin_info"]
    assert "mode=off" in off


STEP = StepOutcome(3, 3, 3, 0.005, 8, 9, 5, (3, 3, 3), (3, 1, 1))


def test_files_follow_at_intervals_and_not_at_each_step(folder: Path) -> None:
    now = itertools.count(0, 0.03)
    metrics = StepMetrics(LABELS, 16, 4, now.__next__)
    seen = set()
    for _ in range(50):
        metrics.observe(STEP)
        seen.add(sum(collected(folder).get("dsd_steps_total", {}).values()))
    assert 4 < len(seen) < 12
    metrics.flush()
    assert collected(folder)["dsd_steps_total"] == {"concurrency=4,k=3": 50}


def test_files_left_by_a_process_of_the_same_id_are_carried_on(folder: Path) -> None:
    for _ in range(2):
        metrics = StepMetrics(LABELS, 16, 4)
        metrics.observe(STEP)
        metrics.flush()
    assert collected(folder)["dsd_steps_total"] == {"concurrency=4,k=3": 2}


def test_other_engine_cores_have_files_of_their_own(folder: Path) -> None:
    for engine in ("0", "1"):
        metrics = StepMetrics({"model_name": "m", "engine": engine}, 16, 4)
        metrics.observe(STEP)
        metrics.flush()
    text = generate_latest(registry(folder)).decode()
    assert sorted(line for line in text.splitlines() if line.startswith("dsd_steps_total")) == [
        f'dsd_steps_total{{concurrency="4",engine="{engine}",k="3",model_name="m"}} 1.0' for engine in ("0", "1")
    ]


@pytest.mark.parametrize("trouble", ["unset", "gone", "full"])
def test_metrics_that_cannot_be_written_end_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    if trouble == "unset":
        monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    elif trouble == "gone":
        folder.rmdir()
    else:

        def full(*_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", full)
    metrics = StepMetrics(LABELS, 16, 4)
    metrics.observe(STEP)
    metrics.flush()
    show_plugin(LABELS, mode="on")
    ScheduleMetrics(LABELS).count_update("http", "applied")
    assert ("no dsd_ series" if trouble == "unset" else "metrics are incomplete") in caplog.text
