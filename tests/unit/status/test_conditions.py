"""Conditions: times move with the status only, and every pass writes all of them."""

import pytest

from dsd_operator.status.conditions import MAX_MESSAGE, Condition, Status, merge_conditions
from dsd_operator.status.observed import PushState
from dsd_operator.status.reasons import ConditionType, Reason
from tests.unit.status.cluster import NOW

OLD = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "m",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}


def ready(status: Status, message: str = "m") -> Condition:
    return Condition(ConditionType.READY, status, Reason.READY, message)


@pytest.mark.parametrize(("status", "since"), [("True", OLD["lastTransitionTime"]), ("False", NOW), ("Unknown", NOW)])
def test_the_time_moves_with_the_status_alone(status: Status, since: str) -> None:
    (condition,) = merge_conditions([OLD], [ready(status, "another message")], 5, NOW)
    assert condition["lastTransitionTime"] == since
    assert condition["message"] == "another message"
    assert condition["observedGeneration"] == 5


def test_the_time_does_not_go_back_with_the_clock() -> None:
    (condition,) = merge_conditions([OLD], [ready("False")], 5, "2019-12-30T00:00:00Z")
    assert condition["lastTransitionTime"] == OLD["lastTransitionTime"]


def test_conditions_that_nobody_sets_any_more_go() -> None:
    merged = merge_conditions([{"type": "Old", "status": "True"}], [ready("True")], 1, NOW)
    assert [condition["type"] for condition in merged] == ["Ready"]


def test_a_message_fits() -> None:
    (condition,) = merge_conditions([], [ready("True", "x" * 100_000)], 1, NOW)
    assert len(condition["message"]) == MAX_MESSAGE


def test_every_state_of_a_pod_is_a_reason() -> None:
    assert {state.value for state in PushState} <= {reason.value for reason in Reason}


def test_reasons_follow_the_api_conventions() -> None:
    for reason in Reason:
        assert reason.value[0].isupper()
        assert reason.value.isalnum()
