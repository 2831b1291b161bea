"""Counts of a LeaderWorkerSet, taken from its pods: an engine counts when all of its group is there."""

from typing import Any, Final

import pytest

from dsd_operator.status.observed import Observed
from dsd_operator.status.rollout import rollout_of
from dsd_operator.status.summarize import summarize
from dsd_operator.status.workload import of_deployment, of_groups
from tests.unit.resources import manifests, resource
from tests.unit.status.cluster import NOW, deployment, outcome, pod

DOMAIN: Final = "leaderworkerset.sigs.k8s.io"
NODES: Final = resource({"engine.nodes": 2, "engine.tensorParallelSize": 2, "replicas": 2})
LIVE: Final = manifests(NODES)["LeaderWorkerSet"]
PODS: Final = "dsd-operator.io/pods"


def stateful_set(mark: str | None = None, replicas: int = 2, revision: str = "new") -> dict[str, Any]:
    leader = LIVE["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["annotations"]
    template = {"metadata": {"annotations": {PODS: mark or leader[PODS]}}}
    labels = {f"{DOMAIN}/template-revision-hash": revision}
    return {
        "metadata": {
            "name": "demo",
            "uid": "of-leaders",
            "generation": 1,
            "labels": labels,
            "annotations": {f"{DOMAIN}/replicas": str(replicas)},
        },
        "spec": {"template": template, "replicas": replicas},
        "status": {"observedGeneration": 1, "replicas": replicas},
    }


def leader(index: int, revision: str = "new", **fields: Any) -> dict[str, Any]:
    made = pod(f"demo-{index}", **fields)
    made["metadata"]["labels"] = {f"{DOMAIN}/template-revision-hash": revision, f"{DOMAIN}/group-index": str(index)}
    made["metadata"]["annotations"] = {f"{DOMAIN}/size": "2"}
    return made


def worker(index: int, **fields: Any) -> dict[str, Any]:
    made = pod(f"demo-{index}-1", **fields)
    made["metadata"]["labels"] = {f"{DOMAIN}/group-index": str(index)}
    made["metadata"]["annotations"] = {f"{DOMAIN}/leader-name": f"demo-{index}"}
    return made


def test_whole_groups_are_ready() -> None:
    found = of_groups(LIVE, stateful_set(), [leader(0), leader(1)], [worker(0), worker(1)])
    assert (found.kind, found.current, found.replicas, found.updated, found.ready) == ("LeaderWorkerSet", True, 2, 2, 2)


@pytest.mark.parametrize(
    ("leaders", "workers"),
    [
        ([leader(0, ready=False)], [worker(0)]),
        ([leader(0)], [worker(0, ready=False)]),
        ([leader(0)], [worker(0, phase="Failed")]),
        ([leader(0)], []),
        ([leader(0)], [worker(1)]),
    ],
    ids=["leader-not-ready", "worker-not-ready", "worker-failed", "no-worker", "worker-of-another"],
)
def test_a_group_that_is_not_whole_is_not_ready(leaders: list[Any], workers: list[Any]) -> None:
    found = of_groups(LIVE, stateful_set(), leaders, workers)
    assert (found.replicas, found.ready) == (1, 0)


def test_an_older_group_is_not_updated() -> None:
    found = of_groups(LIVE, stateful_set(), [leader(0, "old"), leader(1)], [worker(0), worker(1)])
    assert (found.updated, found.ready) == (1, 2)


@pytest.mark.parametrize(
    "seen", [None, stateful_set(mark="another"), stateful_set(replicas=1)], ids=["none", "older-pods", "other-count"]
)
def test_a_controller_that_has_not_seen_the_spec_is_not_current(seen: Any) -> None:
    found = of_groups(LIVE, seen, [leader(0), leader(1)], [worker(0), worker(1)])
    assert not found.current
    status = summarize(NODES, Observed((found,), (), None), outcome(), NOW)
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "False"


STARTED: Final = "2030-01-01T00:00:10Z"


def running(made: dict[str, Any], ready: str, changed: str) -> dict[str, Any]:
    """A pod of a group whose engine has answered once, and that has been ready or not since `changed`."""
    engine = {"name": "engine", "ready": ready == "True", "started": True, "state": {"running": {"startedAt": STARTED}}}
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": changed}]
    made["spec"]["nodeName"] = "node"
    made["status"].update(containerStatuses=[engine], conditions=conditions)
    return made


BEFORE: Final = "2030-01-01T00:00:05Z"
AFTER: Final = "2030-01-01T01:00:00Z"


def moving(leaders: list[dict[str, Any]], workers: list[dict[str, Any]]) -> tuple[str, str]:
    """Progressing of a resource with these groups."""
    found = of_groups(LIVE, stateful_set(), leaders, workers)
    status = summarize(NODES, Observed((found,), tuple(leaders), None, tuple(workers)), outcome(), NOW)
    told = next(c for c in status["conditions"] if c["type"] == "Progressing")
    return told["status"], told["reason"]


@pytest.mark.parametrize(
    ("leaders", "told"),
    [
        ([leader(0), running(leader(1), "False", AFTER)], ("False", "Degraded")),
        ([leader(0), running(leader(1), "False", BEFORE)], ("True", "Starting")),
        ([running(leader(0), "False", BEFORE), running(leader(1), "False", AFTER)], ("True", "Starting")),
        ([running(leader(1), "False", AFTER)], ("True", "RollingOut")),
        ([leader(0, "old"), running(leader(1), "False", AFTER)], ("True", "RollingOut")),
    ],
    ids=["served", "has-yet-to-serve", "another-has-yet-to", "one-is-missing", "one-is-old"],
)
def test_groups_that_served_and_do_not_any_more_are_degraded(leaders: list[Any], told: tuple[str, str]) -> None:
    """The deadline is about what has yet to serve."""
    assert moving(leaders, [worker(0), worker(1)]) == told


def test_a_group_that_is_made_anew_starts() -> None:
    anew = worker(1, ready=False)
    assert moving([leader(0), running(leader(1), "False", AFTER)], [worker(0), anew])[1] != "Degraded"


def test_what_is_left_of_the_other_kind_serves_and_is_not_done() -> None:
    old = of_deployment(deployment(replicas=1, updated=1, ready=1), (), [pod()])
    new = of_groups(LIVE, stateful_set(), [leader(0)], [worker(0)])
    found = rollout_of(NODES, Observed((old, new), (), None), outcome(), NOW)
    assert (found.kind, found.replicas, found.updated, found.ready) == ("LeaderWorkerSet", 2, 1, 2)
    assert not found.complete


def test_a_refused_worker_pod_is_told() -> None:
    waiting = {"name": "engine", "ready": False, "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
    broken = worker(0, ready=False, containerStatuses=[waiting])
    found = of_groups(LIVE, stateful_set(), [leader(0, ready=False)], [broken])
    status = summarize(NODES, Observed((found,), (leader(0, ready=False),), None, (broken,)), outcome(), NOW)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["reason"], "demo-0-1" in ready["message"]) == ("ImagePullBackOff", True)


ENDED: Final = {"exitCode": 1, "message": "dsd-cause: ModelNotFound\nno such model"}
BROKEN: Final = {"name": "engine", "ready": False, "state": {"terminated": ENDED}}


@pytest.mark.parametrize(
    ("seen", "old", "told"),
    [
        (stateful_set(), "old", ("True", "RollingOut")),
        (stateful_set(mark="another", revision="old"), "old", ("True", "RollingOut")),
        (stateful_set(revision="old"), "old", ("False", "ModelNotFound")),
    ],
    ids=["being-replaced", "yet-to-be-replaced", "the-newest"],
)
@pytest.mark.parametrize("place", ["leader", "worker"])
def test_what_is_wrong_with_a_group_that_is_replaced_stops_nothing(
    seen: Any, old: str, told: tuple[str, str], place: str
) -> None:
    """It may be what the change mends."""
    broken = {"ready": False, "containerStatuses": [BROKEN]}
    leaders = [leader(0, old, **(broken if place == "leader" else {"ready": False})), leader(1, ready=False)]
    workers = [worker(0, **(broken if place == "worker" else {})), worker(1)]
    found = of_groups(LIVE, seen, leaders, workers)
    status = summarize(NODES, Observed((found,), tuple(leaders), None, tuple(workers)), outcome(), NOW)
    moving = next(c for c in status["conditions"] if c["type"] == "Progressing")
    assert (moving["status"], moving["reason"]) == told
