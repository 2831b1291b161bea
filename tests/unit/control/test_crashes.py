"""A crash inside a group is told until the group's successor serves, though the pod that crashed is gone."""

from typing import Any, Final

from dsd_operator.reconcile.crashes import earlier_crashes
from dsd_operator.reconcile.memory import Memory
from dsd_operator.status.blockers import pod_blocker
from dsd_operator.status.observed import Observed
from dsd_operator.status.workload import Workload
from tests.unit.status.cluster import pod

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
    return [(fault.pod, fault.message) for fault in earlier_crashes(observed, memory)]


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
    blocker = pod_blocker(Observed(crashed.workloads, (member("g-0"),), None, crashes=earlier_crashes(crashed, memory)))
    assert blocker is not None
    assert (blocker.reason, "pod g-0" in blocker.message) == ("CrashLoopBackOff", True)
