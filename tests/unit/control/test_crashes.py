"""A crash inside a group is told until the group's successor serves, though the pod that crashed is gone."""

from dataclasses import replace
from typing import Any, Final

import pytest

from dsd_operator.reconcile.crashes import earlier_crashes
from dsd_operator.reconcile.memory import Memory
from dsd_operator.status.blockers import pod_blocker
from dsd_operator.status.observed import Observed
from dsd_operator.status.summarize import summarize
from dsd_operator.status.workload import Workload
from tests.unit.resources import resource
from tests.unit.status.cluster import NOW, outcome, pod

ENDED: Final = {"exitCode": 1, "message": "RuntimeError: no such weights"}


def member(
    name: str, group: int = 0, ready: bool = False, crashed: bool = False, gone: bool = False, revision: str = "a"
) -> dict[str, Any]:
    statuses = [{"name": "engine", "ready": ready, "restartCount": int(crashed), "state": {}}]
    if crashed:
        statuses[0]["lastState"] = {"terminated": ENDED}
    made = pod(name, ready, containerStatuses=statuses)
    made["metadata"]["labels"] = {
        "leaderworkerset.sigs.k8s.io/group-index": str(group),
        "leaderworkerset.sigs.k8s.io/template-revision-hash": revision,
    }
    if gone:
        made["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return made


def seen(*pods: dict[str, Any], replicas: int = 1) -> Observed:
    live = {"kind": "LeaderWorkerSet", "spec": {"replicas": replicas}}
    return Observed((Workload(live, True, 1, 1, 0),), pods[:1], None, pods[1:])


def told(observed: Observed, memory: Memory) -> list[tuple[str, str]]:
    return [(fault.pod, fault.message) for fault in earlier_crashes(resource(), observed, memory)]


def test_it_is_told_until_the_successor_is_ready() -> None:
    memory = Memory("uid")
    ((name, message),) = told(seen(member("g-0", crashed=True, gone=True), member("g-0-1")), memory)
    assert name == "g-0"
    assert "RuntimeError: no such weights" in message
    assert "made anew" in message
    starting = seen(member("g-0"), member("g-0-1"))
    assert len(told(starting, memory)) == 1
    assert told(seen(member("g-0", ready=True), member("g-0-1", ready=True)), memory) == []
    assert told(starting, memory) == []


def test_a_successor_of_another_revision_starts_with_a_clean_sheet() -> None:
    """What ended the earlier one may be what the change mends; starting takes minutes."""
    memory = Memory("uid")
    assert told(seen(member("g-0", crashed=True), member("g-0-1", crashed=True, gone=True)), memory)
    assert told(seen(member("g-0", gone=True, revision="b"), member("g-0-1")), memory), "nothing has come in its place"
    assert told(seen(member("g-0", revision="b"), member("g-0-1", revision="b")), memory) == []
    assert told(seen(member("g-0"), member("g-0-1")), memory) == []


def test_a_crash_that_the_pod_itself_tells_is_told_once() -> None:
    memory = Memory("uid")
    assert told(seen(member("g-0", crashed=True), member("g-0-1")), memory) == []


def test_a_worker_s_counts_as_well() -> None:
    memory = Memory("uid")
    assert [name for name, _ in told(seen(member("g-0"), member("g-0-1", crashed=True, gone=True)), memory)] == [
        "g-0-1"
    ]


def test_a_group_that_is_no_longer_wanted_is_forgotten() -> None:
    memory = Memory("uid")
    assert told(seen(member("g-1", 1, crashed=True, gone=True), replicas=2), memory)
    assert told(seen(member("g-0"), replicas=1), memory) == []
    assert told(seen(member("g-0"), replicas=2), memory) == []


def test_pods_of_no_group_are_left_to_their_own_words() -> None:
    single = member("demo-1", crashed=True, gone=True)
    del single["metadata"]["labels"]
    memory = Memory("uid")
    assert told(seen(single), memory) == []


def test_the_status_names_it() -> None:
    memory = Memory("uid")
    crashed = seen(member("g-0", crashed=True, gone=True))
    crashes = earlier_crashes(resource(), crashed, memory)
    blocker = pod_blocker(Observed(crashed.workloads, (member("g-0"),), None, crashes=crashes))
    assert blocker is not None
    assert (blocker.reason, "pod g-0" in blocker.message) == ("CrashLoopBackOff", True)


GROUPS: Final = {"engine.nodes": 2, "engine.tensorParallelSize": 2}
STARTING: Final = (member("g-0"), member("g-0-1"))


def status_of(crashed: Observed, memory: Memory, **status: Any) -> dict[str, Any]:
    """The status after a pass that has seen this."""
    asked = resource(GROUPS, status=status)
    there = replace(crashed, crashes=earlier_crashes(asked, crashed, memory))
    return summarize(asked, there, outcome(), NOW)


def test_an_operator_that_starts_anew_takes_it_from_the_status() -> None:
    memory = Memory("uid")
    told(seen(member("g-0", crashed=True, gone=True)), memory)
    before = status_of(seen(*STARTING), memory)
    after = status_of(seen(*STARTING), Memory("uid"), **before)
    assert after == before
    assert "RuntimeError: no such weights; all pods" in str(after)


@pytest.mark.parametrize(
    ("change", "pods"),
    [
        ({"observedGeneration": 3}, STARTING),
        ({"reason": "ReasonOfALaterVersion"}, STARTING),
        ({"message": "2 of 2 pods serve"}, STARTING),
        ({}, (member("g-0", ready=True), member("g-0-1", ready=True))),
        ({}, (member("g-0", gone=True), member("g-0-1"))),
    ],
    ids=["of another spec", "unknown", "nothing told", "is ready since", "nothing has come in its place"],
)
def test_and_nothing_else(change: dict[str, Any], pods: tuple[dict[str, Any], ...]) -> None:
    memory = Memory("uid")
    told(seen(member("g-0", crashed=True, gone=True)), memory)
    before = status_of(seen(*STARTING), memory)
    ready = next(c for c in before["conditions"] if c["type"] == "Ready")
    ready |= change
    assert earlier_crashes(resource(GROUPS, status=before), seen(*pods), Memory("uid")) == ()
