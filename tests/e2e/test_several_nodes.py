"""One engine of two pods on the local node, which plays two: the real controller, real pods, vLLM's multi-node launch.

The pods find each other by the name that the controller gives the leader, and share nothing but the network.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tests.e2e.fleet import MAX_NEW_TOKENS, PROMPTS, REFERENCE
from tools.cluster.api import full_node_kubeconfig
from tools.leader_worker_set import controller
from tools.testbed import manifests
from tools.testbed.engine import Engine, in_use, pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.site import site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NAMESPACE: Final = "dsd-several-nodes"
SECONDS: Final = 900.0
FIRST: Final = from_triples([(1, 64, 3)])
SECOND: Final = from_triples([(1, 64, 1)])
INTERPRETED: Final = {"name": "TORCHDYNAMO_DISABLE", "value": "1"}
"""A model that is divided has functions that vLLM compiles, eager mode or not; the local image has no Python.h."""


@pytest.fixture(scope="module")
def group(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """The engine, Ready."""
    with (
        controller.running(full_node_kubeconfig(), tmp_path_factory.mktemp("controller")),
        site(installation.kube, NAMESPACE),
    ):
        manifest = manifests.dsd_deployment(NAMESPACE, "pair", TARGET, DRAFTERS["ngram"], FIRST)
        engine = manifest["spec"]["engine"]
        engine |= {"nodes": 2, "tensorParallelSize": 2, "env": [*engine["env"], INTERPRETED]}
        installation.kube.apply(manifest)
        handle = Handle(installation.kube, NAMESPACE, "pair")
        handle.wait_ready(SECONDS)
        yield handle


def members(handle: Handle) -> dict[str, Json]:
    """The pods by what they are."""
    return {pod["metadata"]["labels"]["app.kubernetes.io/name"]: pod for pod in handle.pods()}


def leader(handle: Handle) -> Engine:
    """What answers."""
    return Engine(pod_url(members(handle)["dsd-engine"]["status"]["podIP"]))


def test_two_pods_are_one_engine_and_change_in_place(group: Handle, installation: Installation) -> None:
    before = {kind: pod["metadata"]["uid"] for kind, pod in members(group).items()}
    assert before.keys() == {"dsd-engine", "dsd-worker"}
    engine = leader(group)
    prompt = PROMPTS[0]
    installation.kube.apply(manifests.reference_pod(NAMESPACE, REFERENCE, TARGET, installation.runtime_image))
    first = engine.complete(prompt, MAX_NEW_TOKENS)

    group.set_schedule(SECOND)
    status = group.wait_applied(SECOND)
    assert (status["schedule"]["podsApplied"], status["schedule"]["podsTotal"]) == (1, 1)
    assert in_use(engine.status()) == {schedule_hash(SECOND)}
    assert engine.complete(prompt, MAX_NEW_TOKENS) == first
    assert {kind: pod["metadata"]["uid"] for kind, pod in members(group).items()} == before

    reference = wait_for(
        "the reference engine", lambda: installation.kube.get("Pod", NAMESPACE, REFERENCE) or {},
        lambda pod: bool(pod.get("status", {}).get("podIP")), CHANGE_TIMEOUT,
    )  # fmt: skip
    plain = Engine(pod_url(reference["status"]["podIP"]))
    wait_for("the reference engine to serve", plain.healthy, bool, SECONDS, 0.5)
    assert plain.complete(prompt, MAX_NEW_TOKENS) == first
    installation.kube.delete("Pod", NAMESPACE, REFERENCE)


def test_a_group_comes_anew_as_a_whole(group: Handle) -> None:
    """A worker that ends takes its group along."""
    before = {pod["metadata"]["uid"] for pod in group.pods()}
    worker = members(group)["dsd-worker"]
    group.kube.delete("Pod", NAMESPACE, worker["metadata"]["name"])
    wait_for("two new pods", group.pods, lambda pods: len(pods) == 2 and not before & _uids(pods), SECONDS, 1.0)
    group.wait_ready(SECONDS)
    assert leader(group).complete(PROMPTS[0], MAX_NEW_TOKENS)
    assert in_use(leader(group).status()) == {schedule_hash(SECOND)}


def _uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}
