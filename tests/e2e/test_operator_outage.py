"""The operator is away, or cannot reach the pod: serving goes on, and the schedule arrives all the same."""

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tests.e2e.outage import operator_down
from tools.testbed.engine import Engine, in_use
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, current_condition, identity
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.packets import dropped
from tools.testbed.processes import process_of
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.e2e

FILE_TIMEOUT = 180.0
"""Seconds for a changed ConfigMap to reach the pod's file: the kubelet looks once a minute, and later under load."""


def test_a_change_made_while_the_operator_was_down_is_applied_when_it_returns(
    shared: Handle, installation: Installation
) -> None:
    pod = shared.pod()
    schedule = from_triples([(1, 2, 4), (3, 64, 0)])

    with operator_down(installation):
        shared.set_schedule(schedule)
        assert shared.engine().healthy()
        assert schedule_hash(schedule) not in in_use(shared.engine().status())

    shared.wait_applied(schedule)
    assert in_use(shared.engine().status()) == {schedule_hash(schedule)}
    assert identity(shared.pod()) == identity(pod)


def test_the_file_brings_the_schedule_to_a_pod_that_the_operator_cannot_reach(
    shared: Handle, installation: Installation
) -> None:
    pod, engine = shared.pod(), shared.engine()
    if process_of(pod) is None:
        pytest.skip("packets can only be dropped where the pod's processes are this machine's")
    (operator,) = installation.operator_pods()
    schedule = from_triples([(1, 3, 1), (4, 64, 2)])

    with dropped(pod, operator["status"]["podIP"]):
        shared.set_schedule(schedule)
        condition = wait_for_unreachable(shared)
        counted = shared.status()["schedule"]
        wait_for_file(engine, schedule_hash(schedule))

    assert condition["reason"] == "PodUnreachable", condition
    assert pod["metadata"]["name"] in condition["message"]
    assert (counted["podsUnknown"], counted["podsApplied"], counted["podsTotal"]) == (1, 0, 1)
    shared.wait_applied(schedule)
    assert identity(shared.pod()) == identity(pod)
    assert shared.condition("ScheduleApplied")["status"] == "True"


def wait_for_unreachable(handle: Handle) -> Json:
    """Wait for ScheduleApplied=Unknown; it must never be False on the way (refused, or wrong token)."""
    condition = wait_for(
        "ScheduleApplied to be Unknown for the current generation",
        lambda: current_condition(handle.resource(), "ScheduleApplied"),
        lambda found: found.get("status") in {"Unknown", "False"},
        CHANGE_TIMEOUT,
    )
    assert condition["status"] == "Unknown", condition
    return condition


def wait_for_file(engine: Engine, wanted: str) -> None:
    """Wait until every engine core uses `wanted`, and check that the file brought it."""
    status = wait_for("the file to reach the engine", engine.status, lambda s: in_use(s) == {wanted}, FILE_TIMEOUT)
    assert status.schedule is not None
    assert status.schedule.source == "file"
