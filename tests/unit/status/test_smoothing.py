"""Smoothing that a pod cannot do is said: vLLM's own static table, which a pod without our plugin uses, knows none."""

from typing import Any

import pytest

from dsd_operator.status.observed import PushResult, PushState
from dsd_operator.status.schedule import pod_schedules, schedule_applied
from tests.unit.resources import resource
from tests.unit.status.cluster import answer, deployment, observed, outcome, pod, push

SMOOTHED = {"smoothing": {"dwellSteps": 8}}
PODS = observed(deployment(2, 2, 2), [pod("demo-1"), pod("demo-2")])


def off(name: str, hash_: str | None = None) -> PushResult:
    """A pod whose plugin is off, with the schedule in use that it started with, or another."""
    told = answer(mode="off") if hash_ is None else answer(mode="off", hash_=hash_)
    return push(name, PushState.PLUGIN_OFF, "because", status=told)


def message(spec: dict[str, Any], *pushes: PushResult) -> tuple[str, str]:
    """Status and message of ScheduleApplied."""
    done = outcome(pushes)
    found = schedule_applied(resource(spec), pod_schedules(PODS, done), done, wanted=2)
    return found.status, found.message


@pytest.mark.parametrize("hash_", [None, "0" * 16])
def test_it_is_said_whether_the_schedule_is_in_use_or_not(hash_: str | None) -> None:
    status, text = message(SMOOTHED, push("demo-1"), off("demo-2", hash_))
    assert status == ("True" if hash_ is None else "False")
    assert "spec.smoothing has no effect in 1 pod, whose runtime plugin is off" in text


def test_pods_are_counted_and_not_named() -> None:
    assert "in 2 pods, whose runtime plugin is off" in message(SMOOTHED, off("demo-1"), off("demo-2"))[1]


def test_nothing_is_said_where_it_works_or_nobody_wants_it() -> None:
    assert "smoothing" not in message(SMOOTHED, push("demo-1"), push("demo-2"))[1]
    assert "smoothing" not in message({}, off("demo-1"), off("demo-2"))[1]
    assert "smoothing" not in message({"smoothing": {}}, off("demo-1"), off("demo-2"))[1]
