"""Events: one for each transition, none for a steady state."""

from typing import Any

from dsd_operator.status.observed import PushState
from dsd_operator.status.summarize import summarize, transitions
from tests.unit.resources import resource
from tests.unit.status.cluster import NOW, answer, deployment, observed, outcome, pod, push, waiting

SERVING = summarize(resource(), observed(deployment(), [pod()]), outcome([push(status=answer())]), NOW)


def failing(message: str) -> dict[str, Any]:
    sick = pod(ready=False, containerStatuses=[waiting("engine", "ImagePullBackOff", message)])
    return summarize(resource(), observed(deployment(ready=0), [sick]), outcome(), NOW)


def test_a_steady_state_is_silent() -> None:
    assert transitions(SERVING, SERVING) == []
    assert transitions(failing("denied"), failing("denied, attempt 2")) == []


def test_becoming_ready_is_told() -> None:
    events = transitions({}, SERVING)
    assert {event.reason for event in events} == {"Available", "RolledOut", "Applied", "Ready"}
    assert {event.type for event in events} == {"Normal"}


def test_a_fault_is_a_warning_told_once() -> None:
    events = transitions(SERVING, failing("denied"))
    warnings = [event for event in events if event.type == "Warning"]
    assert [event.reason for event in warnings] == ["ImagePullBackOff"]
    assert "denied" in warnings[0].message


def test_starting_is_no_warning() -> None:
    starting = summarize(resource(), observed(deployment(ready=0), [pod(ready=False)]), outcome(), NOW)
    assert {event.type for event in transitions({}, starting)} == {"Normal"}


def test_a_schedule_that_replaces_another_is_told() -> None:
    before = {**SERVING, "schedule": {**SERVING["schedule"], "hash": "0" * 16}}
    (event,) = transitions(before, SERVING)
    assert (event.type, event.reason) == ("Normal", "Applied")


def test_a_refused_schedule_is_a_warning() -> None:
    refused = outcome([push(state=PushState.REFUSED, message="K above the maximum")])
    after = summarize(resource(), observed(deployment(), [pod()]), refused, NOW)
    assert {event.type for event in transitions(SERVING, after)} == {"Warning"}


def test_a_long_message_fits_into_an_event() -> None:
    for event in transitions(SERVING, failing("x" * 10_000)):
        assert len(event.message) <= 1024
