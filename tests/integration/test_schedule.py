"""The schedule: into every pod that is ready, read back, whatever else is wrong."""

import pytest

from tests.integration.world import FIRST, NAME, SECOND, THIRD, World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


def test_a_change_reaches_every_pod_and_rolls_none(world: World) -> None:
    operator = world.operator()
    world.create(replicas=3)
    engines = world.engines(3)
    world.wait_schedule(applied=3)
    generation = world.wait_child("Deployment")["metadata"]["generation"]
    for triples in (SECOND, THIRD, FIRST):
        world.schedule(triples)
        world.wait_schedule(applied=3)
        assert [engine.triples() for engine in engines] == [triples] * 3
        assert world.wait_stored(triples).revision == engines[0].state.current.revision
    assert world.wait_child("Deployment")["metadata"]["generation"] == generation
    world.wait_condition("ScheduleApplied", status="True")
    assert operator.metric("dsd_operator_schedule_apply_seconds_count") == 3
    assert len({token for engine in engines for token in engine.tokens}) == 1, "one token for one deployment"


def test_smoothing_is_hot_read_back_and_gone_when_it_is_removed(world: World) -> None:
    world.operator()
    world.create(replicas=2)
    engines = world.engines(2)
    plain = world.wait_schedule(applied=2)["hash"]
    generation = world.wait_child("Deployment")["metadata"]["generation"]
    hashes = [plain]
    for change in ({"dwellSteps": 20, "marginPercent": 10}, {"dwellSteps": 30}, None):
        world.patch(smoothing=change)
        hashes.append(world.wait_schedule(applied=2)["hash"])
        wanted = world.resource()["spec"].get("smoothing")
        held = [engine.state.current.smoothing for engine in engines]
        assert [s.model_dump(by_alias=True) if s else None for s in held] == [wanted] * 2
        assert [engine.triples() for engine in engines] == [FIRST] * 2
        config = world.config_file()
        assert config is not None
        assert config.smoothing == held[0]
    assert len(set(hashes)) == 3
    assert hashes[-1] == plain
    assert world.wait_child("Deployment")["metadata"]["generation"] == generation

    engines[0].silent.set()
    world.patch(smoothing={"dwellSteps": 40})
    found = world.wait_schedule(applied=1, total=2)
    assert [pod["reason"] for pod in found["outOfSync"]] == ["PodUnreachable"]
    engines[0].silent.clear()
    world.wait_schedule(applied=2)


def test_a_pod_out_of_reach_is_unknown_and_holds_up_nobody(world: World) -> None:
    world.operator()
    world.create(replicas=3)
    engines = world.engines(3)
    world.wait_schedule(applied=3)
    engines[0].silent.set()
    world.schedule(SECOND)
    wait_for("the others to have it", lambda: [e.triples() for e in engines[1:]], lambda t: t == [SECOND] * 2, 20, 0.02)
    world.wait_schedule(applied=2, total=3)
    condition = world.wait_condition("ScheduleApplied", status="Unknown", reason="PodUnreachable")
    assert "pod" in condition["message"]

    engines[0].read_file()  # the kubelet brings what the operator cannot
    engines[0].silent.clear()
    world.wait_schedule(applied=3)
    assert engines[0].triples() == SECOND


def test_a_refused_child_does_not_hold_up_the_schedule(world: World) -> None:
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    bad = {"spec": {"volumes": [{"name": "Not_A_Name", "emptyDir": {}}]}}
    world.patch(podTemplate=bad)
    world.wait_condition("Ready", status="False", reason="ApplyFailed")
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    assert world.stored_triples() == SECOND

    world.patch(podTemplate=None)
    world.wait_status("the failure to be over", lambda s: "ApplyFailed" not in {c["reason"] for c in s["conditions"]})


def test_dead_pods_and_strangers_are_not_counted(world: World) -> None:
    world.operator()
    world.create()
    (evicted,) = world.wait_pods(1)
    world.set_pod(evicted, "127.0.0.1", phase="Failed", reason="Evicted")
    both = world.wait_pods(2)  # the ReplicaSet makes another one
    (live,) = (pod for pod in both if pod["metadata"]["uid"] != evicted["metadata"]["uid"])
    engine = world.engine(live)
    with_our_labels = {"name": "stranger", "namespace": world.namespace, "labels": live["metadata"]["labels"]}
    container = {"name": "engine", "image": "registry.example/other:1"}
    # Controlled by nobody we know, so that the ReplicaSet does not adopt it either.
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": NAME, "controller": True}
    owner["uid"] = world.wait_child("ConfigMap")["metadata"]["uid"]
    stranger = world.kube.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**with_our_labels, "ownerReferences": [owner]},
            "spec": {"containers": [container], "serviceAccountName": NAME},
        }
    )
    other = world.engine(stranger)
    world.schedule(SECOND)
    schedule = world.wait_schedule(applied=1)
    assert schedule["outOfSync"] == []
    assert engine.triples() == SECOND
    assert other.calls == 0


def test_a_token_that_is_refused_is_minted_anew(world: World) -> None:
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    engine.refuse_first_token = True
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    refused, accepted = engine.tokens
    assert refused != accepted
