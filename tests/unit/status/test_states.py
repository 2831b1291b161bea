"""The table of states: each can be told from the others, and each has a test on a real API server."""

from itertools import combinations
from typing import Final

import pytest

from dsd_operator.status.events import transitions
from dsd_operator.status.reasons import CANNOT_START, ConditionType, Reason
from dsd_operator.status.states import STATES, State, state_of
from dsd_runtime.causes import KNOWN
from tests.integration.test_states import BRING
from tests.states import check_events, named

FAULTS: Final = {Reason(cause.reason) for cause in KNOWN} | {
    Reason.UNSCHEDULABLE,
    Reason.IMAGE_PULL_BACK_OFF,
    Reason.CONTAINER_CONFIG_ERROR,
    Reason.CONTAINER_START_ERROR,
    Reason.CRASH_LOOP_BACK_OFF,
    Reason.OOM_KILLED,
    Reason.STARTUP_TIMEOUT,
}
"""All that `status.pods` can say of one."""


def status_of(state: State, applied: str) -> dict[str, object]:
    """A status in this state."""
    conditions = [
        {"type": kind.value, "status": standing.status, "reason": standing.reason.value, "message": ""}
        for kind, standing in state.standings.items()
    ]
    return {"conditions": conditions, "schedule": {"applied": applied}}


def alike(one: State, other: State) -> bool:
    """Whether some conditions fit both."""
    return all(
        a.status == b.status and (a.also | {a.reason}) & (b.also | {b.reason})
        for a, b in zip(one.standings.values(), other.standings.values(), strict=True)
    )


def test_every_state_is_brought_about_on_an_api_server() -> None:
    assert set(BRING) == {state.name for state in STATES}


def test_states_can_be_told_apart() -> None:
    for one, other in combinations(STATES, 2):
        assert one.applied != other.applied or not alike(one, other), (one.name, other.name)
        assert one.name != other.name
    for state in STATES:
        found = {state_of(status_of(state, applied)) for applied in ("0/0", "0/2", "1/2", "2/2")} - {None}
        assert state in found, state.name


def test_serving_updating_and_degraded_differ_in_what_waits_read() -> None:
    def triple(name: str) -> tuple[str, str, str]:
        state = named(name)
        return state.available.status, state.progressing.status, state.ready.status

    assert triple("ready") == ("True", "False", "True")
    assert triple("updating while serving") == ("True", "True", "False")
    assert triple("degraded") == triple("degraded by a crash") == ("True", "False", "False")


def test_warnings_are_those_of_the_events() -> None:
    for state in STATES:
        events = transitions({}, status_of(state, "1/2"))
        assert {event.reason for event in events if event.type == "Warning"} == set(state.warns), state.name


def test_a_status_that_no_state_knows_has_no_name() -> None:
    assert state_of({}) is None
    odd = {"type": ConditionType.READY.value, "status": "Unknown", "reason": Reason.READY.value}
    assert state_of({"conditions": [odd]}) is None


def test_what_cannot_start_looks_like_a_model_that_is_not_there() -> None:
    assert named("model not found").progressing.status == "False"
    assert named("model not found").progressing.reason in CANNOT_START


def test_reasons_that_mean_the_same_are_the_same_state() -> None:
    held_up = status_of(named("held up while serving"), "1/2")
    conditions = held_up["conditions"]
    assert isinstance(conditions, list)
    conditions[3]["reason"] = Reason.UNSCHEDULABLE.value
    assert state_of(held_up) is named("held up while serving")
    conditions[3]["reason"] = Reason.REFUSED_BY_ENGINE.value
    assert state_of(held_up) is None


def test_every_fault_of_a_new_pod_beside_others_that_serve_has_a_state() -> None:
    """Whatever `status.rollout` can say of one: the roll-out goes on, stops, or takes too long."""
    serving = [state for state in STATES if state.available.status == "True" and state.schedule.status == "Unknown"]
    for fault in FAULTS:
        told = {state.name for state in serving if fault in state.ready.also | {state.ready.reason}}
        wanted = (
            {"failed while serving"} if fault in CANNOT_START else {"held up while serving", "overdue while serving"}
        )
        assert wanted <= told, fault


def told(state: State, *more: tuple[str, str]) -> list[dict[str, str]]:
    """Events as they should be, and others."""
    found = transitions({}, status_of(state, "1/2"))
    events = [{"type": event.type, "reason": event.reason, "message": event.message} for event in found]
    return [*events, *({"type": kind, "reason": reason, "message": "?"} for kind, reason in more)]


def test_a_warning_that_the_table_does_not_know_is_noticed() -> None:
    ready, off = named("ready"), named("runtime plugin off")
    status = status_of(ready, "2/2")
    check_events(told(ready), status, ready)
    check_events(told(ready, ("Normal", "Starting")), status, ready)
    check_events(told(ready, ("Warning", "RuntimePluginOff")), status, ready, off)
    with pytest.raises(AssertionError):
        check_events(told(ready, ("Warning", "RuntimePluginOff")), status, ready)
    with pytest.raises(AssertionError):
        check_events(told(ready), status_of(off, "1/2"), off)
