"""Restarts of engines: counted once each, whatever becomes of the pods."""

from typing import Any

from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.restarts import new_restarts
from dsd_operator.status.observed import Observed

LEADER = "leaderworkerset.sigs.k8s.io/leader-name"


def pod(uid: str, engine: int, sidecar: int = 0, leader: str = "") -> dict[str, Any]:
    counts = {"engine": engine, "proxy": sidecar}
    statuses = [{"name": name, "restartCount": count} for name, count in counts.items()]
    meta = {"uid": uid, "name": f"pod-{uid}", "annotations": {LEADER: leader} if leader else {}}
    return {"metadata": meta, "status": {"containerStatuses": statuses}}


def new(memory: Memory, *pods: dict[str, Any], workers: tuple[dict[str, Any], ...] = ()) -> int:
    """Restarts since the last time."""
    return new_restarts(Observed((), pods, None, workers), memory)


def test_each_restart_counts_once_and_those_before_the_operator_not_at_all() -> None:
    memory = Memory("uid")
    assert new(memory, pod("a", 4)) == 0
    assert new(memory, pod("a", 5), pod("b", 0)) == 1
    assert new(memory, pod("a", 5), pod("b", 2)) == 2
    assert new(memory, pod("b", 2)) == 0
    assert new(memory, pod("c", 1)) == 1


def test_sidecars_and_pods_without_containers_do_not_count() -> None:
    memory = Memory("uid")
    assert new(memory, {"metadata": {"uid": "a"}}) == 0
    assert new(memory, pod("a", 0, sidecar=9)) == 0


def test_an_engine_over_several_nodes_restarts_with_any_of_its_pods_and_once() -> None:
    """Its pods are replaced by others then, so what counts is seen of those that go."""
    memory = Memory("uid")
    workers = (pod("a1", 0, leader="pod-a"), pod("a2", 0, leader="pod-a"), pod("b1", 0, leader="pod-b"))
    assert new(memory, pod("a", 0), pod("b", 0), workers=workers) == 0
    assert new(memory, pod("a", 0), pod("b", 0), workers=(workers[0], pod("a2", 1, leader="pod-a"), workers[2])) == 1
    anew = (pod("c1", 0, leader="pod-c"), pod("b1", 1, leader="pod-b"))
    assert new(memory, pod("c", 0), pod("b", 1), workers=anew) == 1


def test_the_series_is_there_before_the_first_restart_and_goes_with_the_resource() -> None:
    metrics = Metrics("1")
    metrics.engine_restarts("team-a", "demo", 0)
    line = 'dsd_operator_engine_restarts_total{dsd_name="demo",dsd_namespace="team-a"}'
    assert f"{line} 0.0" in metrics.render()[0].decode()
    metrics.engine_restarts("team-a", "demo", 2)
    assert f"{line} 2.0" in metrics.render()[0].decode()
    metrics.remove("team-a", "demo")
    metrics.remove("team-a", "never-seen")
    assert line not in metrics.render()[0].decode()
