"""The PodMonitor: made where it is wanted, on API servers that know the kind and on those that do not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.conftest import log_in, new_world, prepare
from tests.integration.world import CHILDREN, FIRST, NAME, SECOND, World
from tools.cluster.api import ApiOnlyCluster
from tools.prometheus_operator import crds
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

ON: Final = {"podMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}}}
OFF: Final = {"podMonitor": {"enabled": False}}
SECONDS: Final = 60.0
"""The kind is looked for every 15 s."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kube, Path, Path]]:
    """An API server of its own: the CRD stays away until a test installs it."""
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


def _monitor(world: World) -> Json | None:
    return world.kube.get("PodMonitor", world.namespace, NAME)


def _wait_monitor(world: World, what: str, until: Any) -> Json:
    found = wait_for(what, lambda: _monitor(world), lambda m: m is not None and bool(until(m)), SECONDS)
    assert found is not None
    return found


def test_without_the_kind_everything_else_goes_on_and_it_heals(place: World, bare: tuple[Kube, Path, Path]) -> None:
    operator = place.operator()
    place.create(monitoring=ON)
    place.engines(1)
    place.wait_schedule(1)
    ready = place.wait_condition("Ready", reason="ApiMissing")
    assert "this cluster has no PodMonitor (monitoring.coreos.com)" in ready["message"]
    assert "install the CRDs of the Prometheus operator" in ready["message"]
    place.wait_condition("Available", status="True")
    place.wait_condition("Progressing", status="False", reason="RolledOut")
    place.wait_event("ApiMissing")

    place.schedule(SECOND)  # nothing waits for a monitor
    place.wait_schedule(1)
    place.wait_stored(SECOND)
    assert operator.metric("dsd_operator_reconcile_total", result="retry") == 0, "its backoff is for other failures"

    crds.install(bare[1], ["podmonitors"])
    _wait_monitor(place, "the PodMonitor to be made", lambda _: True)
    wait_for("Ready", lambda: place.condition("Ready"), lambda c: c.get("status") == "True", SECONDS)


def test_it_is_made_kept_and_removed_and_no_pod_rolls(place: World, bare: tuple[Kube, Path, Path]) -> None:
    crds.install(bare[1], ["podmonitors"])
    operator = place.operator()
    uid = place.create()["metadata"]["uid"]
    place.engines(1)
    place.wait_condition("Ready", status="True")
    before = {kind: place.wait_child(kind)["metadata"] for kind in CHILDREN}
    (pod,) = place.wait_pods(1)
    assert _monitor(place) is None

    place.patch(monitoring=ON)
    made = _wait_monitor(place, "the PodMonitor", lambda _: True)
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (uid, True)
    assert made["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = made["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("http", "30s")
    place.wait_condition("Ready", status="True")

    place.patch(monitoring={"podMonitor": {"interval": "1m", "labels": {"release": None, "team": "a"}}})
    changed = _wait_monitor(
        place, "the new interval", lambda m: m["spec"]["podMetricsEndpoints"][0]["interval"] == "1m"
    )
    assert "release" not in changed["metadata"]["labels"]
    assert changed["metadata"]["labels"]["team"] == "a"

    writes = operator.writes()
    place.patch(podTemplate={"metadata": {}})  # a pass that finds nothing to do
    wait_for("the pass", lambda: place.status().get("observedGeneration"), lambda g: g == _generation(place), SECONDS)
    assert operator.writes() - writes <= 1, "the status and nothing else"

    place.patch(monitoring=OFF)
    wait_for("the PodMonitor to go", lambda: _monitor(place), lambda m: m is None, SECONDS)
    after = {kind: place.wait_child(kind)["metadata"] for kind in CHILDREN}
    generations = [{kind: m.get("generation") for kind, m in found.items()} for found in (before, after)]
    assert generations[0] == generations[1]
    assert place.wait_pods(1)[0]["metadata"]["uid"] == pod["metadata"]["uid"]
    place.wait_stored(FIRST)


def test_somebody_elses_is_left_alone(place: World, bare: tuple[Kube, Path, Path]) -> None:
    crds.install(bare[1], ["podmonitors"])
    place.operator()
    meta = {"name": NAME, "namespace": place.namespace}
    identity = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": meta}
    place.apply({**identity, "spec": {"selector": {}, "podMetricsEndpoints": [{"port": "other"}]}})
    place.create(monitoring=ON)
    place.engines(1)
    ready = place.wait_condition("Ready", reason="ForeignObject")
    assert "PodMonitor" in ready["message"]
    place.wait_condition("Available", status="True")
    place.patch(monitoring=OFF)
    place.wait_condition("Ready", status="True")
    found = _monitor(place)
    assert found is not None
    assert found["spec"]["podMetricsEndpoints"] == [{"port": "other"}]

    place.kube.delete("PodMonitor", place.namespace, NAME)
    place.patch(monitoring=ON)
    _wait_monitor(place, "the PodMonitor, once the other one has gone", lambda m: "ownerReferences" in m["metadata"])


def test_a_policy_of_the_resource_that_cuts_it_off_is_told(place: World, bare: tuple[Kube, Path, Path]) -> None:
    """One port serves the model and its metrics, and the policy lets in whom it names."""
    crds.install(bare[1], ["podmonitors"])
    operator = place.operator()
    place.create(monitoring=ON, networkPolicy={"enabled": True})
    place.engines(1)

    def wait_told(told: bool) -> None:
        def cut_off() -> bool:
            ready = place.condition("Ready")
            return ready.get("status") == "True" and ("names no monitoring" in ready["message"]) is told

        wait_for(f"Ready, and the cut told: {told}", cut_off, bool, SECONDS, 0.05)

    wait_told(True)
    operator.terminate()
    place.operator(MONITORING_PEERS=json.dumps([{"podSelector": {"matchLabels": {"app": "prometheus"}}}]))
    wait_told(False)


def _generation(world: World) -> int:
    return int(world.resource()["metadata"]["generation"])
