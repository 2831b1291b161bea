"""Whatever happened before, the schedule of the resource that is there now ends up in use, without a restart."""

import json

import pytest

from dsd_runtime.protocol import ConfigFile
from tests.integration.world import FIRST, NAME, SECOND, THIRD, World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


def test_deleted_and_made_again_takes_over_orphans(world: World) -> None:
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    first, deployment = engine.number(), world.wait_child("Deployment")
    world.kube.delete("DSDDeployment", world.namespace, NAME, propagationPolicy="Orphan")
    find = ("DSDDeployment", world.namespace, NAME)
    wait_for("the resource to be gone", lambda: world.kube.get(*find), lambda found: found is None, 45)

    uid = world.create(SECOND)["metadata"]["uid"]
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    second = engine.number()
    assert first is not None
    assert second is not None
    assert second > first
    after = world.wait_child("Deployment")
    assert after["metadata"]["uid"] == deployment["metadata"]["uid"]
    assert after["metadata"]["ownerReferences"][0]["uid"] == uid
    assert after["metadata"]["generation"] == deployment["metadata"]["generation"], "no pod was rolled"


def test_a_restored_config_map_does_not_bring_back_its_schedule(world: World) -> None:
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    backup = world.wait_child("ConfigMap")["data"]
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    newest = engine.number()
    operator.kill()
    world.kube.patch("ConfigMap", world.namespace, NAME, {"data": backup})
    operator.start()
    config = world.wait_stored(SECOND)
    assert config.revision is not None
    assert newest is not None
    wait_for("the pod to agree with the file", engine.number, lambda n: n == world.config_file().revision.number, 20)  # type: ignore[union-attr]
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    current = engine.number()
    assert current is not None
    assert current > newest


def test_a_pod_that_is_ahead_is_overtaken(world: World) -> None:
    """An etcd restored from a backup: the pod has seen a revision that nobody else knows of."""
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    operator.kill()
    current = engine.state.current.revision
    assert current is not None
    ahead = ConfigFile(
        revision=current.model_copy(update={"number": current.number + 10**9}), ranges=engine.state.current.ranges
    )
    config_file, engine.config_file = engine.config_file, lambda: ahead
    engine.read_file()
    engine.config_file = config_file
    world.schedule(THIRD)
    operator.start()
    world.wait_schedule(applied=1)
    assert engine.triples() == THIRD
    assert world.wait_stored(THIRD).revision == engine.state.current.revision


def test_a_file_edited_by_hand_loses(world: World) -> None:
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    operator.kill()
    config = world.config_file()
    assert config is not None
    by_hand = json.dumps(
        {**config.dump(), "revision": None, "ranges": [r.model_dump(by_alias=True) for r in config.ranges][:1]}
    )
    world.kube.patch("ConfigMap", world.namespace, NAME, {"data": {"config.yaml": by_hand}})
    engine.read_file()
    assert engine.triples() == FIRST[:1]
    operator.start()
    world.wait_stored(FIRST)
    world.wait_schedule(applied=1)
    assert engine.triples() == FIRST
