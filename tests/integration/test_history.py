"""The history of a resource's pods on a real API server: what is not the user's wish rolls no pod.

Another version of the operator is one that would render other pods: here, with another image for the engines.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from dsd_operator.render.history import KIND, LIMIT
from dsd_operator.render.owner import ENVELOPE
from tests.integration.world import FIRST, NAME, SECOND, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

OLD: Final = "registry.example/dsd-runtime:old"
NEW: Final = "registry.example/dsd-runtime:new"


def image(world: World) -> str:
    """The engine's image in the Deployment."""
    deployment = world.wait_child("Deployment")
    return str(engine(deployment)["image"])


def engine(deployment: Json) -> Json:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    found: Json = next(c for c in containers if c["name"] == "engine")
    return found


def revisions(world: World) -> list[Json]:
    """The stored ones, oldest first."""
    found = world.kube.list(KIND, world.namespace, f"dsd-operator.io/deployment={NAME}")
    return sorted(found, key=lambda revision: int(revision["revision"]))


def wait_revisions(world: World, *numbers: int) -> list[Json]:
    return wait_for(
        f"revisions {numbers}",
        lambda: revisions(world),
        lambda found: [r["revision"] for r in found] == list(numbers),
        20,
        0.05,
    )


def wait_newest(world: World, number: int) -> None:
    """Wait until the newest revision has this number."""
    wait_for(
        f"revision {number}", lambda: [r["revision"] for r in revisions(world)], lambda found: number in found, 20, 0.05
    )


def generation(world: World) -> int:
    return int(world.wait_child("Deployment")["metadata"]["generation"])


def replica_sets(world: World) -> set[str]:
    return {r["metadata"]["name"] for r in world.kube.list("ReplicaSet", world.namespace)}


def wait_rolled(world: World, before: int) -> None:
    wait_for("the Deployment to change", lambda: generation(world), lambda now: now > before, 20, 0.05)


def settled(world: World) -> None:
    """Wait until the operator has dealt with the present spec: its status is about it."""
    wait_for(
        "the operator to have seen the resource",
        world.resource,
        lambda r: (r.get("status") or {}).get("observedGeneration") == r["metadata"]["generation"],
        20,
        0.05,
    )


def handed_over(world: World, **settings: str) -> None:
    """Stop the operator that runs, and let one of another version make a pass over the resource."""
    if world.operators:
        world.operators[-1].terminate()
    before = world.wait_child("ConfigMap")
    world.operator(**settings)
    now = SECOND if world.stored_triples() == FIRST else FIRST
    world.schedule(now)
    world.wait_stored(now)
    assert world.wait_child("ConfigMap")["metadata"]["uid"] == before["metadata"]["uid"]
    settled(world)


def test_another_version_of_the_operator_rolls_no_pod(world: World) -> None:
    world.operator(RUNTIME_IMAGE=OLD)
    world.create(replicas=2)
    world.wait_pods(2)
    (stored,) = wait_revisions(world, 1)
    before, sets = world.wait_child("Deployment"), replica_sets(world)

    handed_over(world, RUNTIME_IMAGE=NEW)

    after = world.wait_child("Deployment")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert replica_sets(world) == sets
    assert [r["metadata"]["resourceVersion"] for r in revisions(world)] == [stored["metadata"]["resourceVersion"]]
    assert stored["data"]["envelope"]["model"] == {"name": "acme/tiny-llama"}
    assert "schedule" not in json.dumps(stored["data"]["envelope"])
    assert stored["metadata"]["ownerReferences"][0]["uid"] == world.resource()["metadata"]["uid"]
    assert stored["metadata"]["name"] == f"{NAME}-{after['metadata']['labels'][ENVELOPE]}"


def test_a_restart_renders_anew_and_an_undo_brings_back_what_was(world: World) -> None:
    world.operator(RUNTIME_IMAGE=OLD)
    world.create()
    first = generation(world)
    handed_over(world, RUNTIME_IMAGE=NEW)
    assert (image(world), generation(world)) == (OLD, first)

    world.patch(rollout={"restartedAt": "2026-01-01T00:00:00Z"})
    wait_rolled(world, first)
    assert image(world) == NEW
    annotations = world.wait_child("Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["dsd-operator.io/restarted-at"] == "2026-01-01T00:00:00Z"
    wait_revisions(world, 1, 2)

    world.patch(rollout={"restartedAt": None})
    wait_for("the first image", lambda: image(world), lambda found: found == OLD, 20, 0.05)
    newest = wait_revisions(world, 2, 3)[-1]
    assert newest["data"]["pods"]["template"]["spec"]["containers"][0]["image"] == OLD


def test_the_history_has_an_end(world: World) -> None:
    world.operator()
    world.create()
    world.wait_child("Deployment")
    for number in range(1, LIMIT + 3):
        world.patch(engine={"maxNumSeqs": number})
        wait_newest(world, number + 1)
    world.schedule(SECOND)  # one more pass: what is too many goes once the newest is written
    kept = wait_revisions(world, *range(4, LIMIT + 4))
    assert kept[-1]["data"]["envelope"]["engine"] == {"maxNumSeqs": LIMIT + 2}


def test_what_runs_is_taken_over_when_the_history_was_deleted(world: World) -> None:
    world.operator(RUNTIME_IMAGE=OLD)
    world.create()
    first = generation(world)
    world.kubectl("rollout", "restart", f"deployment/{NAME}")
    wait_rolled(world, first)
    before = world.wait_child("Deployment")
    (lost,) = wait_revisions(world, 1)
    world.operators[-1].terminate()
    world.kube.delete(KIND, world.namespace, lost["metadata"]["name"])

    handed_over(world, RUNTIME_IMAGE=NEW)

    (again,) = wait_revisions(world, 1)
    assert again["metadata"]["uid"] != lost["metadata"]["uid"]
    assert again["data"] == lost["data"], "what our own manager had applied, and nothing else"
    after = world.wait_child("Deployment")
    assert after["spec"] == before["spec"]


def test_the_revision_in_use_comes_back_as_it_was_and_no_older_one_does(world: World) -> None:
    """By the resync, for no watch shows it: from the operator's memory, and not as it would render the pods now."""
    world.operator(RUNTIME_IMAGE=OLD)
    world.create()
    wait_revisions(world, 1)
    world.patch(engine={"maxNumSeqs": 32})
    wait_revisions(world, 1, 2)
    handed_over(world, RUNTIME_IMAGE=NEW, RESYNC_SECONDS="1")
    before, sets = generation(world), replica_sets(world)
    older, used = wait_revisions(world, 1, 2)
    for lost in (older, used):
        world.kube.delete(KIND, world.namespace, lost["metadata"]["name"])

    (again,) = wait_revisions(world, 2)
    assert again["metadata"]["uid"] != used["metadata"]["uid"]
    for part in ("name", "labels", "annotations", "ownerReferences"):
        assert again["metadata"][part] == used["metadata"][part]
    assert again["data"] == used["data"]
    writes, passes = world.operators[-1].writes(), world.operators[-1].metric("dsd_operator_reconcile_total")
    wait_for("more passes", lambda: world.operators[-1].metric("dsd_operator_reconcile_total") - passes, more(4), 30)
    assert world.operators[-1].writes() == writes
    assert [r["metadata"]["uid"] for r in revisions(world)] == [again["metadata"]["uid"]]
    assert (generation(world), replica_sets(world)) == (before, sets)


def more(count: float) -> Callable[[float], bool]:
    """Whether there were more than so many."""
    return lambda found: found > count


def test_a_deployment_that_was_deleted_comes_back_as_it_was(world: World) -> None:
    world.operator(RUNTIME_IMAGE=OLD)
    world.create()
    before = world.wait_child("Deployment")
    wait_revisions(world, 1)
    world.operators[-1].terminate()
    world.kube.delete("Deployment", world.namespace, NAME)
    world.operator(RUNTIME_IMAGE=NEW)
    after = world.wait_child("Deployment", other_than=before["metadata"]["uid"])
    assert after["spec"]["template"] == before["spec"]["template"]


def test_an_envelope_that_cannot_be_used_writes_no_revision(world: World) -> None:
    world.operator()
    world.create(engine={"extraArgs": ["--no-such-option"]})
    world.wait_condition("Progressing", reason="InvalidSpec")
    assert revisions(world) == []
    world.patch(engine={"extraArgs": []})
    wait_revisions(world, 1)
    world.wait_child("Deployment")


def test_kubectl_rollout_restart_of_the_child_rolls_once_and_stays(world: World) -> None:
    """Case O18: a foreign annotation on the template is left alone through every later change."""
    world.operator(RUNTIME_IMAGE=OLD)
    world.create()
    first = generation(world)
    world.kubectl("rollout", "restart", f"deployment/{NAME}")
    wait_rolled(world, first)
    restarted = world.wait_child("Deployment")
    mark = restarted["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"]
    sets = replica_sets(world)

    world.patch(replicas=3)
    world.wait_pods(3)
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    settled(world)
    handed_over(world, RUNTIME_IMAGE=NEW)
    assert world.wait_child("Deployment")["spec"]["template"] == restarted["spec"]["template"]
    assert replica_sets(world) == sets

    world.patch(engine={"maxNumSeqs": 8})
    wait_for("the roll-out", lambda: replica_sets(world), lambda now: len(now - sets) == 1, 20, 0.05)
    now = world.wait_child("Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert now["kubectl.kubernetes.io/restartedAt"] == mark


def test_kubectl_rollout_undo_of_the_child_does_not_last(world: World) -> None:
    """The resource says what is wanted; the way back is to change it."""
    world.operator()
    world.create()
    world.wait_pods(1)
    world.patch(engine={"maxNumSeqs": 8})
    wait_for("the second ReplicaSet", lambda: replica_sets(world), lambda found: len(found) == 2, 20, 0.05)
    wanted = world.wait_child("Deployment")
    world.kubectl("rollout", "undo", f"deployment/{NAME}")

    def template() -> Any:
        return world.wait_child("Deployment")["spec"]["template"]

    wait_for("the resource's own template", template, lambda now: now == wanted["spec"]["template"], 20, 0.05)
    settled(world)
    labels = world.wait_child("Deployment")["metadata"]["labels"]
    assert labels[ENVELOPE] == wanted["metadata"]["labels"][ENVELOPE]
    assert len(replica_sets(world)) == 2


def test_what_a_tool_adds_to_the_pods_is_left_alone(world: World) -> None:
    """Reloader and its like add a variable to the engine: one roll-out, and no tug of war."""
    world.operator()
    world.create()
    world.wait_pods(1)
    added = {"name": "STAKATER_DEMO_CONFIGMAP", "value": "1"}
    containers = {"containers": [{"name": "engine", "env": [added]}]}
    patch = json.dumps({"spec": {"template": {"spec": containers}}})
    world.kubectl("patch", "deployment", NAME, "--patch", patch)
    sets = wait_for("the roll-out", lambda: replica_sets(world), lambda found: len(found) == 2, 20, 0.05)
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    settled(world)
    assert added in engine(world.wait_child("Deployment"))["env"]
    assert replica_sets(world) == sets
