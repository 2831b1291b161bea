"""KEDA itself over a DSDDeployment: its operator and metrics server with its own CRDs and rights, and Kubernetes' real
autoscaler, which it makes one of.

From none to one and to none KEDA writes the number, between one and many the autoscaler that KEDA made. It counts pods
with a label (its scaler `kubernetes-workload`, which needs nothing outside), asks a real Prometheus, and the clock.
Pods get a stand-in for their engine.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.integration.conftest import RELEASE, SYSTEM
from tests.integration.world import FIRST, NAME, SECOND, World
from tools.cluster.api import ApiOnlyCluster
from tools.keda import programs
from tools.metrics_adapter import adapter
from tools.monitoring import server
from tools.monitoring.query import Prometheus
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.usefixtures("keda")]

SECONDS: Final = 90.0
"""KEDA looks every second here, the autoscaler every 2 s; the controller manager learns of new kinds every 30 s."""

OPERATOR: Final = f"system:serviceaccount:{SYSTEM}:{RELEASE}"
AUTOSCALER: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
WORK: Final = "app=work"
PAUSED: Final = "autoscaling.keda.sh/paused"


@pytest.fixture(scope="module")
def keda(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """KEDA beside this session's API server."""
    with programs.running(cluster.kubeconfig, tmp_path_factory.mktemp("keda")):
        yield


@pytest.fixture
def scaled(world: World) -> Iterator[World]:
    """A namespace whose ScaledObject is deleted while KEDA can still let it go."""
    yield world
    world.kubectl("delete", "scaledobjects.keda.sh", "--all", "--timeout=60s")


def documented() -> Json:
    """The page's ScaledObject, for this resource and at a test's pace."""
    found = adapter.documented("apiVersion: keda.sh/v1alpha1")
    found["metadata"]["name"] = found["spec"]["scaleTargetRef"]["name"] = NAME
    at_once = {"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"stabilizationWindowSeconds": 0}}
    found["spec"] |= {"pollingInterval": 1, "cooldownPeriod": 1}
    found["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] = at_once
    return found


def by_work(world: World) -> None:
    """Let KEDA have as many replicas as there are pods with the label, from none to four."""
    found = documented()
    found["spec"]["minReplicaCount"] = 0
    found["spec"]["triggers"] = [{"type": "kubernetes-workload", "metadata": {"podSelector": WORK, "value": "1"}}]
    world.apply(found)


def set_work(world: World, count: int) -> None:
    """Have so many pods with the label."""
    world.kubectl("delete", "pods", "--selector", WORK, "--wait=false")
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "work-", "labels": {"app": "work"}},
            "spec": {"containers": [{"name": "work", "image": "work"}]},
        }
        for _ in range(count)
    ]
    if pods:
        world.kubectl("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))


def wait_replicas(world: World, count: int) -> None:
    """Wait until the resource's own number is this, and its Deployment's too."""

    def numbers() -> list[int]:
        return [thing["spec"]["replicas"] for thing in (world.resource(), world.wait_child("Deployment"))]

    wait_for(f"{count} replicas", numbers, lambda found: found == [count, count], SECONDS, 0.1)


def serve(world: World, count: int) -> None:
    """So many pods serve: those without an engine get a stand-in."""
    for pod in world.wait_pods(count):
        if "podIP" not in pod.get("status", {}):
            world.engine(pod)
    world.wait_schedule(count)
    ready = world.wait_condition("Ready", status="True", reason="Ready")
    assert ready["message"].startswith(f"{count} of {count} pods serve")


def wait_none(world: World) -> None:
    """Scaled to zero, and said so."""
    wait_replicas(world, 0)
    world.wait_pods(0)
    world.wait_condition("Ready", status="True", reason="ScaledToZero")
    world.wait_condition("Available", status="False")


def writes(cluster: ApiOnlyCluster, world: World, user: str) -> list[str]:
    """Subresources of the DSDDeployment that a user has written, one for each write that was let in."""
    return [
        event["objectRef"].get("subresource", "")
        for event in cluster.audit(user)
        if event.get("objectRef", {}).get("namespace") == world.namespace
        and event["objectRef"]["resource"] == "dsddeployments"
        and event["verb"] in ("create", "update", "patch", "delete")
        and event["responseStatus"]["code"] < 300
    ]


def autoscalers(world: World) -> list[str]:
    return [thing["metadata"]["name"] for thing in world.kube.list("HorizontalPodAutoscaler", world.namespace)]


def scaled_by(thing: Json) -> set[tuple[str, str]]:
    """Who owns the number of replicas, and by which subresource."""
    return {
        (entry["manager"], entry.get("subresource", ""))
        for entry in thing["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }


def test_from_none_to_many_and_back_without_a_fight(scaled: World, cluster: ApiOnlyCluster) -> None:
    world = scaled
    world.operator()
    world.create()
    serve(world, 1)
    before = {kind: world.wait_child(kind)["metadata"]["uid"] for kind in ("ConfigMap", "Deployment")}
    by_work(world)
    wait_none(world)
    assert world.stored_triples() == FIRST

    world.schedule(SECOND)
    world.wait_stored(SECOND)
    set_work(world, 1)
    wait_replicas(world, 1)
    serve(world, 1)
    set_work(world, 3)
    wait_replicas(world, 3)
    serve(world, 3)
    assert autoscalers(world) == [f"keda-hpa-{NAME}"]
    set_work(world, 0)
    wait_none(world)

    assert {kind: world.wait_child(kind)["metadata"]["uid"] for kind in before} == before
    assert world.stored_triples() == SECOND
    assert len(world.kube.list("ReplicaSet", world.namespace)) == 1, "scaling replaces no pod"
    assert set(writes(cluster, world, OPERATOR)) == {"status"}
    theirs = [*writes(cluster, world, programs.USER), *writes(cluster, world, AUTOSCALER)]
    assert set(theirs) == {"scale"}
    assert writes(cluster, world, AUTOSCALER), "KEDA's autoscaler took part"
    # Created, the schedule, and each write of theirs: nobody wrote a number in between.
    assert world.resource()["metadata"]["generation"] == 2 + len(theirs)
    # Where nobody applied a number, Kubernetes notes no owner for one that came by /scale.
    assert scaled_by(world.resource()) == set()
    assert scaled_by(world.wait_child("Deployment")) == {("dsd-operator", "")}
    assert [event for event in world.events() if event["type"] == "Warning"] == []


def test_paused_the_number_stays(scaled: World) -> None:
    """By `paused`. With `paused-replicas` KEDA 2.19 keeps its autoscaler if the number has to change first."""
    world = scaled
    world.operator()
    world.create(replicas=0)
    set_work(world, 2)
    by_work(world)
    wait_replicas(world, 2)
    serve(world, 2)
    world.kubectl("annotate", "scaledobjects.keda.sh", NAME, f"{PAUSED}=true")
    wait_for("no autoscaler", lambda: autoscalers(world), lambda names: names == [], SECONDS)
    set_work(world, 4)
    world.schedule(SECOND)
    world.wait_schedule(2)
    assert world.resource()["spec"]["replicas"] == 2
    assert scaled_by(world.resource()) == {("kube-controller-manager", "scale")}
    world.kubectl("annotate", "scaledobjects.keda.sh", NAME, f"{PAUSED}-")
    wait_replicas(world, 4)


def test_the_hours_of_the_page_scale(scaled: World) -> None:
    """With hours that are now, and then with others."""
    world = scaled
    world.operator()
    world.create()
    world.wait_child("Deployment")
    world.apply(at_hours(-1, 6))
    wait_replicas(world, 2)
    world.apply(at_hours(6, 12))
    wait_none(world)


def at_hours(start: int, end: int) -> Json:
    """The page's two blocks together, on from and to so many hours from now."""
    found = documented()
    found["spec"] |= {**adapter.documented("spec:\n  minReplicaCount: 0")["spec"], "cooldownPeriod": 1}
    hour = datetime.now(UTC).hour
    times = {name: f"0 {(hour + hours) % 24} * * *" for name, hours in (("start", start), ("end", end))}
    found["spec"]["triggers"][0]["metadata"] |= {"timezone": "UTC", **times}
    return found


def queue(folder: Path, requests: int) -> dict[str, Any]:
    """A Prometheus configuration in which an engine of the resource reports so many waiting requests."""
    labels = {"namespace": "default", "dsd_name": "llama"}
    rule = {"record": "vllm:num_requests_waiting", "expr": f"vector({requests})", "labels": labels}
    (folder / "queue.yml").write_text(yaml.safe_dump({"groups": [{"name": "queue", "rules": [rule]}]}))
    return {**server.scraping([]), "rule_files": ["queue.yml"]}


def test_the_query_of_the_page_scales(scaled: World, tmp_path: Path) -> None:
    """Nine requests wait, four for each engine: three of them. Then none waits, and one stays."""
    world = scaled
    world.operator()
    world.create()
    world.wait_child("Deployment")
    with server.running(tmp_path, queue(tmp_path, 9)) as prometheus:
        world.apply(pointed_at(prometheus))
        wait_replicas(world, 3)
        queue(tmp_path, 0)
        prometheus.reload()
        wait_replicas(world, 1)


def pointed_at(prometheus: Prometheus) -> Json:
    """The page's ScaledObject as it is, but for the address."""
    found = documented()
    found["spec"]["triggers"][0]["metadata"]["serverAddress"] = prometheus.url
    return found
