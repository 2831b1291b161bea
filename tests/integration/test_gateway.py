"""InferencePool and HTTPRoute: made where they are wanted, on API servers that know the kinds and on those that do not.

With the CRDs of the two projects, their rules included; no Gateway is there to act on them.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.blocks import blocks
from tests.docs.session import Session
from tests.integration.world import NAME, World
from tools.cluster.api import ApiOnlyCluster
from tools.cluster.paths import REPOSITORY
from tools.testbed.kube import Json
from tools.testbed.module_crds import HTTP_ROUTE, INFERENCE_POOL
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS: Final = 60.0
"""A kind that is missing is looked for every 15 s."""

POOL: Final = {"enabled": True, "endpointPicker": {"name": "picker"}}
ROUTE: Final = {"enabled": True, "parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": ["a.example"]}


def _wait(world: World, kind: str, what: str, until: Any = lambda _: True) -> Json:
    found = wait_for(
        f"{kind} {what}", lambda: world.kube.get(kind, world.namespace, NAME), lambda m: bool(m and until(m)), SECONDS
    )
    assert found is not None
    spec: Json = found["spec"]
    return spec


@pytest.mark.long
def test_without_the_kinds_everything_else_goes_on_and_it_heals(world: World, cluster: ApiOnlyCluster) -> None:
    INFERENCE_POOL.remove(cluster.kubeconfig)
    HTTP_ROUTE.remove(cluster.kubeconfig)
    world.operator()
    world.create(gateway={"inferencePool": POOL, "httpRoute": ROUTE})
    world.engines(1)
    world.wait_schedule(1)
    ready = world.wait_condition("Ready", status="False", reason="ApiMissing")
    for kind, group in (("InferencePool", "inference.networking.k8s.io"), ("HTTPRoute", "gateway.networking.k8s.io")):
        assert f"this cluster has no {kind} ({group})" in ready["message"]
    assert "install the CRDs of the Gateway API Inference Extension" in ready["message"]
    assert "Pods and schedule are not affected" in ready["message"]
    world.wait_condition("Available", status="True")
    world.wait_condition("Progressing", status="False", reason="RolledOut")

    INFERENCE_POOL.install(cluster.kubeconfig)
    HTTP_ROUTE.install(cluster.kubeconfig)
    _wait(world, "InferencePool", "to be made")
    _wait(world, "HTTPRoute", "to be made")
    wait_for("Ready", lambda: world.condition("Ready"), lambda c: c.get("status") == "True", SECONDS)


def test_they_are_made_changed_and_removed_and_no_pod_rolls(world: World, cluster: ApiOnlyCluster) -> None:
    INFERENCE_POOL.install(cluster.kubeconfig)
    HTTP_ROUTE.install(cluster.kubeconfig)
    world.operator()
    world.create()
    world.engines(1)
    world.wait_condition("Ready", status="True")
    (pod,) = world.wait_pods(1)
    generation = world.wait_child("Deployment")["metadata"]["generation"]

    world.patch(gateway={"httpRoute": ROUTE})
    route = _wait(world, "HTTPRoute", "to be made")
    assert route["parentRefs"][0]["namespace"] == "infra"
    assert route["hostnames"] == ["a.example"]
    (backend,) = route["rules"][0]["backendRefs"]
    assert (backend["kind"], backend["name"], backend["port"]) == ("Service", NAME, 8000)

    world.patch(gateway={"inferencePool": POOL})
    pool = _wait(world, "InferencePool", "to be made")
    assert pool["endpointPickerRef"]["name"] == "picker"
    matched = ",".join(f"{key}={value}" for key, value in pool["selector"]["matchLabels"].items())
    assert [p["metadata"]["name"] for p in world.kube.list("Pod", world.namespace, matched)] == [
        pod["metadata"]["name"]
    ]
    _wait(
        world, "HTTPRoute", "to lead to the pool",
        lambda m: m["spec"]["rules"][0]["backendRefs"][0]["kind"] == "InferencePool",
    )  # fmt: skip

    world.patch(gateway={"inferencePool": {"endpointPicker": {"failureMode": "FailOpen"}}, "httpRoute": {
        "hostnames": ["b.example"]}})  # fmt: skip
    _wait(world, "InferencePool", "to change", lambda m: m["spec"]["endpointPickerRef"]["failureMode"] == "FailOpen")
    _wait(world, "HTTPRoute", "to change", lambda m: m["spec"]["hostnames"] == ["b.example"])
    world.wait_condition("Ready", status="True")

    world.patch(gateway=None)
    for kind in ("InferencePool", "HTTPRoute"):
        wait_for(f"{kind} to go", lambda k=kind: world.kube.get(k, world.namespace, NAME), lambda m: m is None, SECONDS)  # type: ignore[misc]
    assert world.wait_child("Deployment")["metadata"]["generation"] == generation
    assert world.wait_pods(1)[0]["metadata"]["uid"] == pod["metadata"]["uid"]


def test_somebody_elses_route_is_left_alone(world: World, cluster: ApiOnlyCluster) -> None:
    HTTP_ROUTE.install(cluster.kubeconfig)
    world.operator()
    meta = {"name": NAME, "namespace": world.namespace}
    identity = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta}
    world.apply({**identity, "spec": {"hostnames": ["mine.example"]}})
    world.create(gateway={"httpRoute": ROUTE})
    world.engines(1)
    ready = world.wait_condition("Ready", status="False", reason="ForeignObject")
    assert "HTTPRoute" in ready["message"]
    world.patch(gateway={"httpRoute": {"enabled": False}})
    world.wait_condition("Ready", status="True")
    found = world.kube.get("HTTPRoute", world.namespace, NAME)
    assert found is not None
    assert found["spec"]["hostnames"] == ["mine.example"]


def test_a_route_leads_to_a_pool_only_while_that_is_there_and_ours(world: World, cluster: ApiOnlyCluster) -> None:
    """A stranger's pool has the name: clients stay with the Service, and are not sent to somebody else's models."""
    INFERENCE_POOL.install(cluster.kubeconfig)
    HTTP_ROUTE.install(cluster.kubeconfig)
    world.operator()
    meta = {"name": NAME, "namespace": world.namespace}
    strange = {"selector": {"matchLabels": {"app": "theirs"}}, "targetPorts": [{"number": 80}]}
    picker = {"endpointPickerRef": {"name": "theirs", "port": {"number": 9002}}}
    identity = {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": meta}
    world.apply({**identity, "spec": {**strange, **picker}})
    world.create(gateway={"httpRoute": ROUTE})
    world.engines(1)
    _wait(world, "HTTPRoute", "to lead to the Service", _leads_to("Service"))
    world.wait_condition("Ready", status="True")

    world.patch(gateway={"inferencePool": POOL, "httpRoute": {"hostnames": ["b.example"]}})
    ready = world.wait_condition("Ready", status="False", reason="ForeignObject")
    assert "InferencePool" in ready["message"]
    assert _wait(world, "HTTPRoute", "to be left", _leads_to("Service"))["hostnames"] == ["a.example"]

    world.kube.delete("InferencePool", world.namespace, NAME)
    world.patch(gateway={"inferencePool": {"endpointPicker": {"port": 9003}}})  # else it is looked for in 15 s
    _wait(world, "HTTPRoute", "to lead to the pool", _leads_to("InferencePool"))
    assert _wait(world, "InferencePool", "to be ours")["endpointPickerRef"]["name"] == "picker"
    world.patch(gateway={"inferencePool": {"enabled": False}})
    _wait(world, "HTTPRoute", "to lead to the Service again", _leads_to("Service"))


def _leads_to(kind: str) -> Any:
    return lambda route: route["spec"]["rules"][0]["backendRefs"][0]["kind"] == kind


def test_the_page(world: World, cluster: ApiOnlyCluster, tmp_path: Path) -> None:
    """The commands of docs/how-to/gateway.md."""
    INFERENCE_POOL.install(cluster.kubeconfig)
    HTTP_ROUTE.install(cluster.kubeconfig)
    world.operator()
    world.create()
    world.engines(1)
    world.wait_condition("Ready", status="True")
    found = blocks(REPOSITORY / "docs" / "how-to" / "gateway.md")
    page = [block for block in found if block.level == THIS_FILE or block.comment == "output"]
    (folder := tmp_path / "shell").mkdir()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(world.kubectl("config", "view", "--raw", "--flatten"))
    Session(folder, kubeconfig, prelude=f"kubectl config set-context --current --namespace {world.namespace}").run(page)


THIS_FILE: Final = str(Path(__file__).relative_to(Path(__file__).resolve().parents[2]))
