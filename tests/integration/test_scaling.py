"""Who decides how many pods there are, the resource or an autoscaler, with the real HorizontalPodAutoscaler controller.

It needs no metric to bring the number between `minReplicas` and `maxReplicas`, so these two move it here; on the node
it follows a metric of the engines (tests/e2e/test_autoscaling.py).
"""

from typing import Any, Final

import pytest

from tests.integration.world import FIRST, NAME, SECOND, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS: Final = 60.0
"""The autoscaler looks every 2 s; one that has gone is noticed within seconds."""

RESOURCE: Final = {"apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment", "name": NAME}
CHILD: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}


def autoscale(world: World, target: Any, least: int, most: int) -> None:
    """Apply an autoscaler whose metric nobody serves."""
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": [metric]}
    meta = {"name": "by-queue", "namespace": world.namespace}
    world.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec})


def wait_replicas(world: World, kind: str, count: int) -> None:
    """Wait until the spec of the resource, or of its Deployment, says so."""
    wait_for(
        f"{count} replicas of the {kind}",
        lambda: (world.kube.get(kind, world.namespace, NAME) or {}).get("spec", {}).get("replicas"),
        lambda found: found == count,
        SECONDS,
        0.1,
    )


def stays(world: World, count: int, generation: int) -> Json:
    """The Deployment, with so many replicas, and nobody has written its spec since this generation."""
    found = world.wait_child("Deployment")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (count, generation)
    return found


def managers_of_replicas(deployment: Json) -> set[str]:
    return {
        entry["manager"]
        for entry in deployment["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }


def test_scaled_to_zero_and_back_the_schedule_is_the_current_one(world: World) -> None:
    world.operator()
    world.create(FIRST)
    world.engines(1)
    world.wait_schedule(1)
    world.kubectl("scale", f"dsd/{NAME}", "--replicas=0")
    world.wait_pods(0)
    world.wait_condition("Ready", status="True", reason="ScaledToZero")
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    world.kubectl("scale", f"dsd/{NAME}", "--replicas=1")
    (engine,) = world.engines(1)
    world.wait_schedule(1)
    assert engine.triples() == SECOND


def test_an_autoscaler_of_the_child_is_left_alone_as_long_as_it_is_there(world: World) -> None:
    operator = world.operator()
    world.create()
    world.engines(1)
    world.wait_schedule(1)
    autoscale(world, CHILD, 2, 4)
    wait_replicas(world, "Deployment", 2)
    world.engines(2)
    ready = world.wait_condition("Ready", status="True", reason="Ready")
    assert ready["message"].startswith("2 of 2 pods serve; HorizontalPodAutoscaler by-queue scales the Deployment")
    assert "let it scale the DSDDeployment demo instead" in ready["message"]
    assert world.status()["ready"] == "2/2"
    left = world.wait_child("Deployment")
    assert managers_of_replicas(left) == {"kube-controller-manager"}

    world.patch(replicas=3)  # not used, and no reason to write the Deployment
    world.schedule(SECOND)
    world.wait_schedule(2)
    stays(world, 2, left["metadata"]["generation"])
    operator.kill()
    world.operator()
    world.schedule(FIRST)
    world.wait_schedule(2)
    stays(world, 2, left["metadata"]["generation"])

    autoscale(world, CHILD, 1, 1)
    wait_replicas(world, "Deployment", 1)
    world.wait_status("one pod of one", lambda status: status.get("ready", "").endswith("/1"))

    world.kubectl("delete", "hpa", "by-queue")
    wait_replicas(world, "Deployment", 3)
    assert "dsd-operator" in managers_of_replicas(world.wait_child("Deployment"))


def test_a_child_that_is_scaled_by_hand_is_set_back(world: World) -> None:
    world.operator()
    world.create()
    world.wait_pods(1)
    world.kubectl("scale", f"deployment/{NAME}", "--replicas=3")
    wait_replicas(world, "Deployment", 1)
    assert "HorizontalPodAutoscaler" not in str(world.status())


def test_an_autoscaler_of_the_resource_decides_in_its_place(world: World) -> None:
    """Last: the controller manager learns of new kinds every 30 s, and this file's API server may be new."""
    world.operator()
    world.create()
    world.wait_child("Deployment")
    autoscale(world, RESOURCE, 2, 4)
    wait_replicas(world, "DSDDeployment", 2)
    world.engines(2)
    world.wait_schedule(2)
    assert world.wait_condition("Ready", status="True")["message"].startswith("2 of 2 pods serve")
    autoscale(world, RESOURCE, 3, 4)
    wait_replicas(world, "Deployment", 3)
    world.schedule(SECOND)  # a change of the user's says nothing of replicas
    world.wait_stored(SECOND)
    assert world.resource()["spec"]["replicas"] == 3
    autoscale(world, RESOURCE, 1, 1)
    wait_replicas(world, "Deployment", 1)
