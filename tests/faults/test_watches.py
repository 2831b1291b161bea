"""Watches that end, break, fall silent or lose an event: what was missed is made up for."""

from typing import Final

import pytest

from tests.faults import faults
from tests.faults.calls import Call
from tests.faults.stage import Stage
from tests.faults.test_requests import SECONDS, does_not_hammer, identity, nothing_is_destroyed, other
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SILENCE: Final = 180.0
"""kopf gives up a stream that says nothing, not even a bookmark, after a good minute."""

RESOURCES: Final = "dsddeployments"


def watches(call: Call) -> bool:
    """It opens a watch."""
    return call.watch


def lists(call: Call) -> bool:
    """kopf lists before it watches."""
    return call.framework and call.read


def error(code: int) -> Json:
    """The event in which an API server ends a watch."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    return {"type": "ERROR", "object": {**status, "reason": "Expired", "message": "too old resource version"}}


def tell(stage: Stage, event: Json, plural: str) -> None:
    """Put an event into the watch on a kind, as soon as there is one."""
    wait_for(f"a watch on {plural}", lambda: stage.proxy.say(event, plural), lambda told: told == 1, SECONDS, 0.05)


def reopened(stage: Stage, since: int, count: int) -> None:
    """Wait until so many watches were opened anew."""
    wait_for(
        f"{count} watches", lambda: [c for c in stage.proxy.calls[since:] if c.watch and c.status == 200],
        lambda found: len(found) >= count, SECONDS, 0.05,
    )  # fmt: skip


def changes(stage: Stage, since: int, before: tuple[object, ...]) -> None:
    """A schedule changed now arrives, and nothing was destroyed."""
    schedule = other(stage)
    stage.schedule(schedule)
    stage.wait_settled(schedule, 2, SECONDS)
    nothing_is_destroyed(stage, since, before)


def test_watches_that_are_cut(healthy: Stage) -> None:
    """The change is made while there is no watch."""
    since, before, schedule = len(healthy.proxy.calls), identity(healthy), other(healthy)
    rule = healthy.proxy.on(watches, faults.reset)
    assert healthy.proxy.cut_watches() >= 6
    wait_for("watches to be tried again", lambda: len(rule.hit), lambda n: n >= 6, SECONDS, 0.02)
    healthy.schedule(schedule)
    healthy.proxy.lift()
    healthy.wait_settled(schedule, 2)
    nothing_is_destroyed(healthy, since, before)
    does_not_hammer(rule.hit)


@pytest.mark.parametrize("code", [410, 500])
def test_a_watch_that_ends_with_an_error(healthy: Stage, code: int) -> None:
    """410: too old. 500: the API server cannot decode one of its objects."""
    since, before = len(healthy.proxy.calls), identity(healthy)
    tell(healthy, error(code), RESOURCES)
    reopened(healthy, since, 1)
    changes(healthy, since, before)


@pytest.mark.long
@pytest.mark.parametrize("code", [404, 410, 429, 500])
def test_a_list_before_a_watch_that_is_refused(healthy: Stage, code: int) -> None:
    """404 for a kind that is there: an API server that starts. 410: a list that took too long."""
    since, before = len(healthy.proxy.calls), identity(healthy)
    rule = healthy.proxy.on(lists, faults.refuse(code), times=2)
    tell(healthy, error(410), RESOURCES)
    tell(healthy, error(410), "pods")
    wait_for("both lists to be refused", lambda: len(rule.hit), lambda n: n == 2, SECONDS, 0.02)
    reopened(healthy, since, 2)
    changes(healthy, since, before)


@pytest.mark.long
def test_watches_that_fall_silent(healthy: Stage) -> None:
    """The connections stay open and bring nothing more, not even bookmarks."""
    since, before, schedule = len(healthy.proxy.calls), identity(healthy), other(healthy)
    assert healthy.proxy.streams.silence() >= 6
    healthy.schedule(schedule)
    healthy.wait_settled(schedule, 2, SILENCE)
    nothing_is_destroyed(healthy, since, before)
    assert healthy.operators[0].health() == "ok\n"


def test_what_woke_it_comes_only_once(healthy: Stage) -> None:
    """The watch brings the change, and each read fails once: what woke the operator comes only once."""
    since, before, schedule = len(healthy.proxy.calls), identity(healthy), other(healthy)
    rule = healthy.proxy.on(lambda call: call.read and not call.framework, faults.refuse(500), times=1)
    healthy.schedule(schedule)
    healthy.wait_settled(schedule, 2)
    assert len(rule.hit) == 1
    nothing_is_destroyed(healthy, since, before)
