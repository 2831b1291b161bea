"""InferencePool and HTTPRoute: made where they are wanted, on API servers that know the kinds and on those that do not.

With the CRDs of the two projects, their rules included; no Gateway is there to act on them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.blocks import blocks
from tests.docs.session import Session
from tests.integration.conftest import log_in, new_world, prepare
from tests.integration.world import NAME, World
from tools.cluster.api import ApiOnlyCluster
from tools.cluster.paths import REPOSITORY
from tools.testbed.kube import Json, Kube
from tools.testbed.module_crds import HTTP_ROUTE, INFERENCE_POOL
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS: Final = 60.0
"""A kind that is missing is looked for every 15 s."""

POOL: Final = {"enabled": True, "endpointPicker": {"name": "picker"}}
ROUTE: Final = {"enabled": True, "parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": ["a.example"]}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kube, Path, Path]]:
    """An API server of its own: the CRDs stay away until a test installs them."""
    with ApiOnlyCluster() as running:
        prepare(running.kubeconfig)
        operator = tmp_path_factory.mktemp("bare") / "kubeconfig"
        log_in(running.kubeconfig, operator)
        yield Kube(running.kubeconfig), running.kubeconfig, operator


@pytest.fixture
def place(bare: tuple[Kube, Path, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A namespace on it."""
    kube, admin, operator = bare
    with new_world(kube, admin, operator, tmp_path, request.node) as made:
        yield made


def _wait(world: World, kind: str, what: str, until: Any = lambda _: True) -> Json:
    found = wait_for(
        f"{kind} {what}", lambda: world.kube.get(kind, world.namespace, NAME), lambda m: bool(m and until(m)), SECONDS
    )
    assert found is not None
    spec: Json = found["spec"]
    return spec


def test_without_the_kinds_everything_else_goes_on_and_it_heals(place: World, bare: tuple[Kube, Path, Path]) -> None:
    place.operator()
    place.create(gateway={"inferencePool": POOL, "httpRoute": ROUTE})
    place.engines(1)
    place.wait_schedule(1)
    ready = place.wait_condition("Ready", status="False", reason="ApiMissing")
    for kind, group in (("InferencePool", "inference.networking.k8s.io"), ("HTTPRoute", "gateway.networking.k8s.io")):
        assert f"this cluster has no {kind} ({group})" in ready["message"]
    assert "install the CRDs of the Gateway API Inference Extension" in ready["message"]
    assert "Pods and schedule are not affected" in ready["message"]
    place.wait_condition("Available", status="True")
    place.wait_condition("Progressing", status="False", reason="RolledOut")

    INFERENCE_POOL.install(bare[1])
    HTTP_ROUTE.install(bare[1])
    _wait(place, "InferencePool", "to be made")
    _wait(place, "HTTPRoute", "to be made")
    wait_for("Ready", lambda: place.condition("Ready"), lambda c: c.get("status") == "True", SECONDS)


def test_they_are_made_changed_and_removed_and_no_pod_rolls(place: World, bare: tuple[Kube, Path, Path]) -> None:
    INFERENCE_POOL.install(bare[1])
    HTTP_ROUTE.install(bare[1])
    place.operator()
    place.create()
    place.engines(1)
    place.wait_condition("Ready", status="True")
    (pod,) = place.wait_pods(1)
    generation = place.wait_child("Deployment")["metadata"]["generation"]

    place.patch(gateway={"httpRoute": ROUTE})
    route = _wait(place, "HTTPRoute", "to be made")
    assert route["parentRefs"][0]["namespace"] == "infra"
    assert route["hostnames"] == ["a.example"]
    (backend,) = route["rules"][0]["backendRefs"]
    assert (backend["kind"], backend["name"], backend["port"]) == ("Service", NAME, 8000)

    place.patch(gateway={"inferencePool": POOL})
    pool = _wait(place, "InferencePool", "to be made")
    assert pool["endpointPickerRef"]["name"] == "picker"
    matched = ",".join(f"{key}={value}" for key, value in pool["selector"]["matchLabels"].items())
    assert [p["metadata"]["name"] for p in place.kube.list("Pod", place.namespace, matched)] == [
        pod["metadata"]["name"]
    ]
    _wait(
        place, "HTTPRoute", "to lead to the pool",
        lambda m: m["spec"]["rules"][0]["backendRefs"][0]["kind"] == "InferencePool",
    )  # fmt: skip

    place.patch(gateway={"inferencePool": {"endpointPicker": {"failureMode": "FailOpen"}}, "httpRoute": {
        "hostnames": ["b.example"]}})  # fmt: skip
    _wait(place, "InferencePool", "to change", lambda m: m["spec"]["endpointPickerRef"]["failureMode"] == "FailOpen")
    _wait(place, "HTTPRoute", "to change", lambda m: m["spec"]["hostnames"] == ["b.example"])
    place.wait_condition("Ready", status="True")

    place.patch(gateway=None)
    for kind in ("InferencePool", "HTTPRoute"):
        wait_for(f"{kind} to go", lambda k=kind: place.kube.get(k, place.namespace, NAME), lambda m: m is None, SECONDS)  # type: ignore[misc]
    assert place.wait_child("Deployment")["metadata"]["generation"] == generation
    assert place.wait_pods(1)[0]["metadata"]["uid"] == pod["metadata"]["uid"]


def test_somebody_elses_route_is_left_alone(place: World, bare: tuple[Kube, Path, Path]) -> None:
    HTTP_ROUTE.install(bare[1])
    place.operator()
    meta = {"name": NAME, "namespace": place.namespace}
    identity = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta}
    place.apply({**identity, "spec": {"hostnames": ["mine.example"]}})
    place.create(gateway={"httpRoute": ROUTE})
    place.engines(1)
    ready = place.wait_condition("Ready", status="False", reason="ForeignObject")
    assert "HTTPRoute" in ready["message"]
    place.patch(gateway={"httpRoute": {"enabled": False}})
    place.wait_condition("Ready", status="True")
    found = place.kube.get("HTTPRoute", place.namespace, NAME)
    assert found is not None
    assert found["spec"]["hostnames"] == ["mine.example"]


def test_the_page(place: World, bare: tuple[Kube, Path, Path], tmp_path: Path) -> None:
    """The commands of docs/how-to/gateway.md."""
    INFERENCE_POOL.install(bare[1])
    HTTP_ROUTE.install(bare[1])
    place.operator()
    place.create()
    place.engines(1)
    place.wait_condition("Ready", status="True")
    found = blocks(REPOSITORY / "docs" / "how-to" / "gateway.md")
    page = [block for block in found if block.level == THIS_FILE or block.comment == "output"]
    (folder := tmp_path / "shell").mkdir()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(place.kubectl("config", "view", "--raw", "--flatten"))
    Session(folder, kubeconfig, prelude=f"kubectl config set-context --current --namespace {place.namespace}").run(page)


THIS_FILE: Final = str(Path(__file__).relative_to(Path(__file__).resolve().parents[2]))
