"""Pods that are dead, leaving, without an address, or at another one than before: none is counted, asked or retried in
the place of one that serves."""

import json

import pytest

from tests.integration.operator_process import OperatorProcess
from tests.integration.world import SECOND, THIRD, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

HELD = "example.com/held"


def new_pod(world: World, known: set[str], count: int) -> Json:
    """Wait until there are so many pods, one of them new."""
    (found,) = (pod for pod in world.wait_pods(count) if pod["metadata"]["name"] not in known)
    known.add(found["metadata"]["name"])
    return found


def change(world: World, pod: Json, patch: Json) -> None:
    """Merge into a pod."""
    world.kubectl("patch", "pod", pod["metadata"]["name"], "--type=merge", "-p", json.dumps(patch))


def test_only_pods_that_can_serve_are_counted_and_asked(world: World) -> None:
    operator, known = world.operator(), set[str]()
    world.create()
    for number, gone in enumerate([{"phase": "Failed", "reason": "Evicted"}] * 3 + [{"phase": "Succeeded"}]):
        world.set_pod(new_pod(world, known, number + 1), "127.0.0.1", ready=False, **gone)
    leaving = new_pod(world, known, 5)
    left = world.engine(leaving)
    world.wait_schedule(applied=1)
    change(world, leaving, {"metadata": {"finalizers": [HELD]}})  # no kubelet takes its time here
    world.kubectl("delete", "pod", leaving["metadata"]["name"], "--wait=false")
    live = world.engine(new_pod(world, known, 6))
    calls = left.calls

    world.schedule(SECOND)
    schedule = world.wait_schedule(applied=1)
    assert schedule["outOfSync"] == []
    assert (schedule["podsTotal"], schedule["podsUnknown"]) == (1, 0)
    assert world.condition("ScheduleApplied")["status"] == "True"
    world.wait_status("one pod ready", lambda s: s["ready"] == "1/1")
    assert live.triples() == SECOND
    assert left.calls == calls, "nobody is sent what it cannot use any more"
    assert no_retries(operator)
    change(world, leaving, {"metadata": {"finalizers": None}})


def test_a_pod_without_an_address_and_one_with_another_are_not_asked_at_the_old_one(world: World) -> None:
    operator = world.operator()
    world.create(replicas=2)
    one, other = world.wait_pods(2)
    old = world.engine(one)
    world.set_pod(other, "", ready=False, podIPs=[])
    unknown = world.wait_status("one applied", lambda s: s["schedule"]["podsApplied"] == 1)["schedule"]
    assert (unknown["podsUnknown"], unknown["podsTotal"]) == (1, 2)
    assert world.condition("ScheduleApplied")["status"] == "Unknown"

    new = world.engine(one)  # its sandbox was made anew: the same pod, at another address
    world.wait_status("one applied", lambda s: s["schedule"]["podsApplied"] == 1)
    wait_for("the new address to be asked", lambda: new.calls, bool, 20, 0.05)
    calls = old.calls
    world.schedule(THIRD)
    wait_for("the schedule at the new address", new.triples, lambda t: t == THIRD, 20, 0.05)
    assert old.calls == calls
    assert no_retries(operator)


def no_retries(operator: OperatorProcess) -> bool:
    """Whether no pass asked for another one."""
    return operator.metric("dsd_operator_reconcile_total", result="retry") == 0
