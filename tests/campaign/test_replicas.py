"""Replicas: none, down and up, up and down, very many; pods that stay are not touched, and each new one is served."""

import pytest

from tests.integration.engine_stand_in import StandIn
from tests.integration.world import FIRST, SECOND, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

MANY = 200
SECONDS = 120.0


def test_replicas_up_and_down(world: World) -> None:
    world.operator()
    world.create(replicas=0)
    world.wait_condition("Ready", status="True", reason="ScaledToZero")
    engines: dict[str, StandIn] = {}
    for count in (2, 3, 1, 2, 0, 1):
        world.patch(replicas=count)
        engines = scaled(world, engines, count)
        world.wait_schedule(applied=count)
        assert [engine.triples() for engine in engines.values()] == [FIRST] * count
        assert world.status()["selector"] == "app.kubernetes.io/name=dsd-engine,dsd-operator.io/deployment=demo"
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert rolls(world) == 1


@pytest.mark.long
def test_very_many_replicas_and_back(world: World) -> None:
    operator = world.operator()
    world.create(replicas=1)
    world.patch(replicas=MANY)
    wait_for("all pods", lambda: len(world.kube.list("Pod", world.namespace)), lambda n: n == MANY, SECONDS, 0.5)
    wait_for("their count", world.status, lambda s: s["schedule"]["podsTotal"] == MANY, SECONDS, 0.5)
    world.patch(replicas=1)
    wait_for("one pod", lambda: len(world.kube.list("Pod", world.namespace)), lambda n: n == 1, SECONDS, 0.5)
    wait_for("its count", world.status, lambda s: s["schedule"]["podsTotal"] == 1, SECONDS, 0.5)
    assert rolls(world) == 1
    assert operator.running


def scaled(world: World, before: dict[str, StandIn], count: int) -> dict[str, StandIn]:
    """Wait for so many pods, as few as possible of them new; these get a stand-in."""
    pods = {uid_of(pod): pod for pod in world.wait_pods(count)}
    assert len(before.keys() & pods.keys()) == min(count, len(before))
    return {uid: before.get(uid) or world.engine(pod) for uid, pod in pods.items()}


def uid_of(thing: Json) -> str:
    """The uid."""
    return str(thing["metadata"]["uid"])


def rolls(world: World) -> int:
    """How many templates the Deployment has had."""
    return int(world.wait_child("Deployment")["metadata"]["annotations"]["deployment.kubernetes.io/revision"])
