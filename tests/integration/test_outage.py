"""The operator may be away, at any time and for as long as it likes."""

import signal

import pytest

from tests.integration.world import CHILDREN, NAME, SECOND, World
from tools.cluster.api import ApiOnlyCluster
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

GARBAGE_SECONDS = 60.0
"""The garbage collector learns of a new CRD within 30 s."""


def test_a_schedule_changed_while_the_operator_is_dead_is_applied_on_return(world: World) -> None:
    operator = world.operator()
    world.create(replicas=2)
    engines = world.engines(2)
    world.wait_schedule(applied=2)
    operator.kill()
    world.schedule(SECOND)
    operator.start()
    world.wait_schedule(applied=2)
    assert [engine.triples() for engine in engines] == [SECOND] * 2
    assert world.stored_triples() == SECOND


def test_the_resource_and_its_children_go_with_the_operator_down(world: World) -> None:
    operator = world.operator()
    world.create()
    world.wait_children()
    operator.kill()
    world.kube.delete("DSDDeployment", world.namespace, NAME)

    def left() -> list[str]:
        return [kind for kind in ("DSDDeployment", *CHILDREN) if world.child(kind) is not None]

    wait_for("everything to be gone", left, lambda kinds: not kinds, GARBAGE_SECONDS)


def test_the_namespace_goes_with_the_operator_down(world: World) -> None:
    operator = world.operator()
    world.create()
    world.wait_children()
    operator.kill()
    world.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    world.kube.delete("Namespace", None, world.namespace)
    find = ("Namespace", None, world.namespace)

    def gone() -> bool:
        # No kubelet ends the pods here, and the ReplicaSet may have made another one.
        if world.kube.list("Pod", world.namespace):
            world.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        return world.kube.get(*find) is None

    wait_for("the namespace to be gone", gone, bool, GARBAGE_SECONDS)


def test_series_go_with_the_resource(world: World) -> None:
    operator = world.operator()
    world.create()
    world.wait_condition("Ready", status="False")

    def series() -> float:
        return operator.metric("dsd_operator_condition", dsd_namespace=world.namespace, dsd_name=NAME)

    wait_for("the series of the resource", series, lambda count: count == 4, 20)
    world.kube.delete("DSDDeployment", world.namespace, NAME)
    wait_for("the series to be gone", series, lambda count: count == 0, 20)
    assert operator.metric("dsd_operator_managed_deployments") == 0


def test_the_api_server_may_go_away_and_come_back(world: World, cluster: ApiOnlyCluster) -> None:
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    cluster.stop_apiserver()
    cluster.start_apiserver()
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    assert operator.running
    assert operator.health() == "ok\n"


def test_etcd_may_restart(world: World, cluster: ApiOnlyCluster) -> None:
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    (pod,) = world.wait_pods(1)
    deployment = world.wait_child("Deployment")
    cluster.restart_etcd()
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    assert operator.running
    assert [p["metadata"]["uid"] for p in world.wait_pods(1)] == [pod["metadata"]["uid"]]
    assert world.wait_child("Deployment")["metadata"]["generation"] == deployment["metadata"]["generation"]


def test_it_stops_when_asked_and_every_line_names_its_resource(world: World) -> None:
    operator = world.operator(WATCH_NAMESPACES="", LOG_LEVEL="DEBUG")
    world.create()
    world.wait_children()
    world.wait_condition("Ready", status="False")
    assert operator.terminate() == 0, f"{signal.SIGTERM!r} ends it in order"
    lines = operator.lines()
    about_children = [line for line in lines if line["message"].startswith("Applied ")]
    assert len(about_children) >= len(CHILDREN)
    assert {(line["namespace"], line["name"]) for line in about_children if line["namespace"] == world.namespace} == {
        (world.namespace, NAME)
    }
    assert not [line for line in lines if line["level"] in ("ERROR", "CRITICAL")]
    assert "kopf" not in " ".join(line["message"] for line in lines if "finalizer" in line["message"])
