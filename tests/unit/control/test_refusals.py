"""Pods of engines over several nodes that nobody makes: told once it has lasted, and as long as it does."""

from typing import Any, Final

import pytest

from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.refusals import PATIENCE_SECONDS, with_refusals
from dsd_operator.status import workload
from dsd_operator.status.observed import Observed
from dsd_operator.status.summarize import summarize
from dsd_operator.status.workload import Workload, of_groups
from tests.unit.status.cluster import NOW, outcome
from tests.unit.status.test_workload import LIVE, NODES, leader, stateful_set

Json = dict[str, Any]


def leaders_set(wanted: int, counted: int, seen: bool = True, leaving: bool = False) -> Json:
    """The leaders' StatefulSet, whose controller has counted so many pods."""
    made = stateful_set()
    made["metadata"] |= {"name": "demo-x", "uid": "set", "generation": 2}
    if leaving:
        made["metadata"]["deletionTimestamp"] = NOW
    made["spec"]["replicas"] = wanted
    return {**made, "status": {"observedGeneration": 2 if seen else 1, "replicas": counted}}


def owned(pod: Json) -> Json:
    pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "demo-x", "uid": "set", "controller": True}]
    return pod


def groups(made: Json, count: int) -> Workload:
    return of_groups(LIVE, made, [owned(leader(index)) for index in range(count)], [])


LACKING: Final = "StatefulSet demo-x has 1 of 2; `kubectl describe statefulset demo-x` says why"


def test_what_its_controller_cannot_make_is_lacking() -> None:
    assert groups(leaders_set(wanted=2, counted=1), 1).lacking == {"demo-x": LACKING}
    found = workload.LACKING.search(f"pods cannot be created: {LACKING}")
    assert found is not None, "kubectl dsd explain reads the Events of what it names"
    assert found[1] == "demo-x"


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (leaders_set(wanted=2, counted=2), 2),
        (leaders_set(wanted=2, counted=2), 1),
        (leaders_set(wanted=2, counted=1, seen=False), 1),
        (leaders_set(wanted=2, counted=1, leaving=True), 1),
        (leaders_set(wanted=0, counted=1), 1),
    ],
    ids=["all are there", "one has just gone", "has not seen the number", "goes itself", "too many"],
)
def test_nothing_else_is(made: Json, count: int) -> None:
    assert groups(made, count).lacking == {}


def test_workers_are_counted_by_their_own_set() -> None:
    workers = leaders_set(wanted=1, counted=0) | {}
    workers["metadata"] |= {"name": "demo-x-0", "uid": "workers"}
    found = of_groups(LIVE, leaders_set(wanted=1, counted=1), [owned(leader(0))], [], [workers])
    assert list(found.lacking) == ["demo-x-0"]


def test_it_is_told_when_it_has_lasted_and_as_long_as_it_does() -> None:
    memory = Memory("uid")
    short, whole = groups(leaders_set(wanted=2, counted=1), 1), groups(leaders_set(wanted=2, counted=2), 2)

    def told(seen: Workload, now: float) -> tuple[str, ...]:
        (found,) = with_refusals([seen], {}, memory, now)
        return found.refusals

    assert told(short, 100) == ()
    assert told(short, 100 + PATIENCE_SECONDS - 0.1) == ()
    assert told(short, 100 + PATIENCE_SECONDS) == (LACKING,)
    assert told(short, 1000) == (LACKING,)
    assert told(whole, 1001) == ()
    assert told(short, 1002) == (), "it begins anew"


def test_the_status_says_that_it_does_not_go_on_and_where_to_look() -> None:
    memory = Memory("uid")
    for now in (0, PATIENCE_SECONDS):
        workloads = with_refusals([groups(leaders_set(wanted=2, counted=1), 1)], {}, memory, now)
    status = summarize(NODES, Observed(workloads, (leader(0),), None), outcome(), NOW)
    conditions = {c["type"]: c for c in status["conditions"]}
    assert {conditions[kind]["reason"] for kind in ("Progressing", "Ready")} == {"PodCreationFailed"}
    assert conditions["Ready"]["message"] == f"pods cannot be created: {LACKING}"

    anew = with_refusals([groups(leaders_set(wanted=2, counted=1), 1)], status, Memory("uid"), 5)
    assert anew[0].refusals == (LACKING,), "an operator that starts anew takes nothing back"
