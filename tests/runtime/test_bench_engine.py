"""The engines of the runtime's benchmarks, in their own processes, with a tiny model: what they serve and swap."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.runtime_engine import LARGEST, EngineSpec, Run
from bench.runtime_pool import EngineError, Member, Pool
from bench.runtime_workloads import Task

pytestmark = pytest.mark.engine

TASKS = [Task(f"ab ab ab {i}", 10 + i) for i in range(6)]
TABLE = ((1, 2, LARGEST), (3, 32, 1))


@pytest.fixture(scope="module")
def ours(models: Path) -> Iterator[Member]:
    with Pool() as pool:
        yield pool.start(EngineSpec("ours", str(models / "target"), LARGEST, TABLE, plugin=True, max_model_len=256))


def test_a_run_serves_every_request_to_its_length(ours: Member) -> None:
    run = ours.run(TASKS, 3)
    assert run.tokens == sum(task.tokens for task in TASKS)
    assert run.drafted > run.accepted > 0, "a tiny random model repeats itself"
    assert run.steps < run.tokens
    assert run.swaps == 0


def test_a_timed_run_swaps_at_its_rate_and_leaves_nothing_behind(ours: Member) -> None:
    run: Run = ours.call("run", TASKS, 3, 1.0, ([((1, 32, 2),), TABLE], 50.0))
    assert run.seconds >= 1.0
    assert 0 < run.swaps <= 50 * run.seconds
    assert run.swap_seconds > 0
    assert ours.run(TASKS, 6).tokens == sum(task.tokens for task in TASKS)


def test_a_schedule_is_changed_in_place(ours: Member) -> None:
    ours.call("put", ((1, 32, 0),))
    assert ours.run(TASKS, 3).drafted == 0
    ours.call("put", TABLE)
    assert ours.run(TASKS, 3).drafted > 0


def test_what_the_engine_refuses_is_raised_here(ours: Member) -> None:
    with pytest.raises(EngineError, match="refused schedule"):
        ours.call("put", ((1, 32, LARGEST + 1),))
    assert ours.run(TASKS, 3).tokens > 0


def test_profiles_name_functions(ours: Member) -> None:
    assert any("runtime_engine" in row["function"] or row["calls"] for row in ours.call("profile", TASKS, 3))
    assert ours.call("profile_swaps", [TABLE, ((1, 32, 2),)], 10)
