"""Every method on the real path: output as without speculation, and a schedule that changes in place under load."""

import itertools

import pytest

from dsd_runtime.schedule import Ranges, schedule_hash
from tests.e2e.fleet import MAX_NEW_TOKENS, PROMPTS, Fleet, Oracle
from tools.testbed.engine import Engine, in_use
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity, names_of
from tools.testbed.load import Load
from tools.testbed.metrics import decode_steps_by_k, growth, steps_by_k, total
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, schedules, tokens_for

CHANGES = 20
STREAMS = 8
WINDOW_STEPS = 20
DECODE_STEPS = 5
"""Engine steps that are looked at after each change, and how many of them at least only decode."""

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
    possible = tokens_for(schedule, STREAMS)
    every, decoding = verified_tokens(engine, reported.engines[0].steps)
    assert every <= possible | {0}, f"verified K {every}, schedule {schedule}"  # 0: a step that only reads prompts
    assert decoding <= possible, f"verified K {decoding} while decoding, schedule {schedule}"


def verified_tokens(engine: Engine, made: int) -> tuple[set[int], set[int]]:
    """Every K verified in a window of steps, and those of its steps that only decode, of which there are some.

    The first steps after those that the status knew of are let pass: K is chosen one step before its use. The page may
    be behind the status, so steps are counted from the status.
    """
    before = page_after(engine, made + 2)
    after = after_steps(engine, before, WINDOW_STEPS, DECODE_STEPS)
    every, decoding = (growth(read(before), read(after)) for read in (steps_by_k, decode_steps_by_k))
    return set(every), set(decoding)


def page_after(engine: Engine, step: float) -> str:
    """The metrics with all that was counted up to this step.

    An engine writes the file of its counters first, that of its histograms next, and a page may be read in between. So
    the first page that shows the step is let pass: once the counters move again, the histograms have followed.
    """
    first = wait_for(f"step {step}", engine.metrics, lambda now: count(now) >= step, CHANGE_TIMEOUT, 0.05)
    return wait_for("steps after it", engine.metrics, lambda now: count(now) > count(first), CHANGE_TIMEOUT, 0.05)


def after_steps(engine: Engine, before: str, steps: int, decode_steps: int) -> str:
    """The metrics once at least this many more steps, and this many that only decode, were made than in `before`."""
    return wait_for(
        f"{steps} more engine steps, {decode_steps} of them decoding only",
        engine.metrics,
        lambda now: count(now) - count(before) >= steps and decode_count(now) - decode_count(before) >= decode_steps,
        CHANGE_TIMEOUT,
        0.05,
    )


def count(text: str) -> float:
    """Engine steps so far."""
    return sum(steps_by_k(text).values())


def decode_count(text: str) -> float:
    """Engine steps so far that only decode."""
    return sum(decode_steps_by_k(text).values())
