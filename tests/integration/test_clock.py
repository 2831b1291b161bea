"""The operator's wall clock jumps, two days ahead and two days back: nothing that it writes goes back with it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import dsd_operator
from tests.integration.operator_process import OperatorProcess
from tests.integration.world import FIRST, SECOND, THIRD, Triples, World

pytestmark = pytest.mark.integration

DAYS: Final = 2 * 86_400
MILLISECONDS: Final = 1000

Clock = Callable[[int], None]


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Says by how many seconds the operator's clock is wrong."""
    file = tmp_path / "clock"
    monkeypatch.setenv("MOVED_CLOCK", str(file))

    def move(seconds: int) -> None:
        temporary = file.with_suffix(".new")
        temporary.write_text(str(seconds))
        temporary.rename(file)

    move(0)
    return move


@pytest.fixture
def operator(world: World, clock: Clock) -> OperatorProcess:  # noqa: ARG001 - the process is born with it
    """The operator whose clock a test moves."""
    made = world.idle_operator()
    made.module = "tests.integration.moved_clock"
    return made.start()


def applied(world: World, schedule: Triples) -> int:
    """Change the schedule, wait until both pods use it; returns its number."""
    world.schedule(schedule)
    world.wait_schedule(applied=2)
    revision = world.wait_stored(schedule).revision
    assert revision is not None
    return revision.number


def test_numbers_tokens_and_times_outlive_a_clock_that_is_set_back(
    world: World, clock: Clock, operator: OperatorProcess
) -> None:
    world.create(replicas=2)
    engines = world.engines(2)
    world.wait_schedule(applied=2)
    right = applied(world, SECOND)

    clock(DAYS)
    ahead = applied(world, FIRST)
    assert ahead - right > (DAYS - 3600) * MILLISECONDS, "the clock moved"
    for pod in world.wait_pods(2):
        world.set_pod(pod, pod["status"].get("podIP") or "", ready=False)
    late = world.wait_condition("Available", status="False")["lastTransitionTime"]

    clock(-DAYS)
    for pod in world.wait_pods(2):
        world.set_pod(pod, pod["status"]["podIP"])
    assert world.wait_condition("Available", status="True")["lastTransitionTime"] >= late
    assert applied(world, THIRD) == ahead + 1
    assert [engine.triples() for engine in engines] == [THIRD] * 2
    assert len({token for engine in engines for token in engine.tokens}) == 1, "the token is as good as before"
    assert "401" not in operator.text()


def test_a_restart_with_a_clock_that_is_behind_finds_the_pods_numbers(
    world: World, clock: Clock, operator: OperatorProcess
) -> None:
    world.create(replicas=2)
    engines = world.engines(2)
    world.wait_schedule(applied=2)
    clock(DAYS)
    ahead = applied(world, SECOND)
    operator.kill()
    world.kube.delete("ConfigMap", world.namespace, "demo")
    clock(-DAYS)
    operator.start()
    assert applied(world, THIRD) > ahead
    assert [engine.triples() for engine in engines] == [THIRD] * 2


def test_the_wall_clock_is_read_in_one_place() -> None:
    root = Path(dsd_operator.__file__).parent
    reads = re.compile(r"time\.time\(|time_ns\(|datetime\.now|utcnow|\.today\(")
    assert {str(p.relative_to(root)) for p in root.rglob("*.py") if reads.search(p.read_text())} == {"app.py"}
