"""Every method on the real path: output as without speculation, and a schedule that changes in place under load."""

import itertools

import pytest

from dsd_runtime.schedule import Ranges, schedule_hash
from tests.e2e.fleet import MAX_NEW_TOKENS, PROMPTS, Fleet, Oracle
from tools.testbed.engine import Engine, in_use
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity, names_of
from tools.testbed.load import Load
from tools.testbed.metrics import growth, steps_by_k, total
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, schedules, tokens_for

CHANGES = 20
STREAMS = 8
WINDOW_STEPS = 20
"""Engine steps that are looked at after each change."""

pytestmark = [pytest.mark.e2e, pytest.mark.parametrize("method", DRAFTERS)]


def test_greedy_output_equals_the_engine_without_speculation(method: str, fleet: Fleet, oracle: Oracle) -> None:
    engine = fleet.ready(method).engine()

    answers = {prompt: engine.complete(prompt, MAX_NEW_TOKENS) for prompt in PROMPTS}

    assert answers == dict(oracle)
    text = engine.metrics()
    assert total(text, "dsd_draft_tokens_total") > 0, "nothing was drafted: the comparison proves nothing"
    assert total(text, "dsd_accepted_tokens_total") > 0, "no draft was accepted"


def test_schedule_changes_in_place_under_load(method: str, fleet: Fleet, oracle: Oracle) -> None:
    handle = fleet.ready(method)
    pod, deployment, replica_sets = handle.pod(), handle.child("Deployment"), handle.children("ReplicaSet")
    engine = handle.engine()

    with Load([engine.url], PROMPTS, STREAMS, MAX_NEW_TOKENS) as load:
        for schedule in itertools.islice(schedules(method), CHANGES):
            change_and_follow(handle, engine, schedule)

    assert load.failures == []
    assert len(load.answers) > STREAMS
    assert [answer for answer in load.answers if answer.tokens != oracle[answer.prompt]] == []
    assert identity(handle.pod()) == identity(pod) == (pod["metadata"]["uid"], 0)
    assert handle.child("Deployment")["metadata"]["generation"] == deployment["metadata"]["generation"]
    assert names_of(handle.children("ReplicaSet")) == names_of(replica_sets)


def change_and_follow(handle: Handle, engine: Engine, schedule: Ranges) -> None:
    """Change the schedule and see it in the resource's status, in the engine's status and in the steps."""
    handle.set_schedule(schedule)
    status = handle.wait_applied(schedule)
    assert (status["schedule"]["podsApplied"], status["schedule"]["podsTotal"]) == (1, 1)
    reported = engine.status()
    assert in_use(reported) == {schedule_hash(schedule)}
    assert reported.schedule is not None
    assert reported.schedule.ranges == schedule
    seen = verified_tokens(engine)
    assert seen <= tokens_for(schedule, STREAMS), f"verified K {seen}, schedule {schedule}"


def verified_tokens(engine: Engine) -> set[int]:
    """Every K verified in a window of steps. The first steps are let pass: K is chosen one step before its use."""
    before = after_steps(engine, steps_by_k(engine.metrics()), 2)
    return set(growth(before, after_steps(engine, before, WINDOW_STEPS)))


def after_steps(engine: Engine, before: dict[int, float], count: int) -> dict[int, float]:
    """Steps by K once `count` more than `before` were made."""
    return wait_for(
        f"{count} more engine steps",
        lambda: steps_by_k(engine.metrics()),
        lambda now: sum(now.values()) >= sum(before.values()) + count,
        CHANGE_TIMEOUT,
        0.05,
    )
