"""Restarts of engines: counted once each, whatever becomes of the pods."""

from typing import Any

from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.restarts import new_restarts


def pod(uid: str, engine: int, sidecar: int = 0) -> dict[str, Any]:
    counts = {"engine": engine, "proxy": sidecar}
    statuses = [{"name": name, "restartCount": count} for name, count in counts.items()]
    return {"metadata": {"uid": uid}, "status": {"containerStatuses": statuses}}


def test_each_restart_counts_once_and_those_before_the_operator_not_at_all() -> None:
    memory = Memory("uid")
    assert new_restarts([pod("a", 4)], memory) == 0
    assert new_restarts([pod("a", 5), pod("b", 0)], memory) == 1
    assert new_restarts([pod("a", 5), pod("b", 2)], memory) == 2
    assert new_restarts([pod("b", 2)], memory) == 0
    assert new_restarts([pod("c", 1)], memory) == 1


def test_sidecars_and_pods_without_containers_do_not_count() -> None:
    memory = Memory("uid")
    assert new_restarts([{"metadata": {"uid": "a"}}], memory) == 0
    assert new_restarts([pod("a", 0, sidecar=9)], memory) == 0


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
