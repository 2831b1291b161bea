"""Very many resources, in small: what `make bench-operator` measures with a thousand, counted here with thirty.

A scheduler and kwok make their pods ready, and one server is the engine of each. Numbers of requests and the order of
events are asserted, and no time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tests.integration.conftest import log_in, prepare
from tests.integration.operator_process import OperatorProcess
from tests.integration.world import FIRST, SECOND, THIRD, Triples, ranges, spec
from tools.cluster.api import ApiOnlyCluster
from tools.testbed import fake_nodes
from tools.testbed.fake_engines import FakeEngines
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

NAMESPACE: Final = "many"
NETWORK: Final = IPv4Network("127.65.0.0/24")
DEPLOYMENTS: Final = 30
REPLICAS: Final = 3
SECONDS: Final = 120.0
READS: Final = 12
"""At most, in a pass that finds nothing to do: what there is of children, each kind once."""


@dataclass
class Many:
    """The cluster with all resources Ready."""

    kube: Kube
    engines: FakeEngines
    operator: OperatorProcess

    def resources(self) -> list[Json]:
        """All of them."""
        return self.kube.list("DSDDeployment", NAMESPACE)

    def addresses(self, name: str | None = None) -> list[str]:
        """Of the pods, or of those of one resource."""
        selector = f"dsd-operator.io/deployment={name}" if name else ""
        return [pod["status"]["podIP"] for pod in self.kube.list("Pod", NAMESPACE, selector)]

    def schedule(self, name: str, triples: Triples) -> str:
        """Change a schedule; returns its hash."""
        self.kube.patch("DSDDeployment", NAMESPACE, name, {"spec": {"schedule": ranges(triples)}})
        return schedule_hash(from_triples(triples))

    def requests(self, *verbs: str) -> float:
        """Requests of the operator to the API server."""
        return sum(self.operator.metric("dsd_operator_api_requests_total", verb=verb) for verb in verbs)

    def wait_asked(self, addresses: list[str]) -> None:
        """Wait until the operator has asked each of these pods twice from now on."""
        before = {address: self.engines.pods[address].requests for address in addresses}

        def missing() -> list[str]:
            return [a for a, count in before.items() if self.engines.pods[a].requests < count + 2]

        wait_for("every pod to be asked", missing, lambda found: not found, SECONDS, 0.05)

    def wait_put(self, addresses: list[str], wanted: str) -> None:
        """Wait until these engines use a schedule."""
        wait_for(
            "the schedule", lambda: self.engines.last_put(addresses, wanted), lambda at: at is not None, SECONDS, 0.02
        )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    """Thirty resources, Ready and left alone since; the operator looks at each every second."""
    directory: Path = tmp_path_factory.mktemp("many")
    with ApiOnlyCluster(nodes=True) as cluster, FakeEngines(NETWORK) as engines:
        prepare(cluster.kubeconfig)
        kube = Kube(cluster.kubeconfig)
        fake_nodes.add(kube, NETWORK, 2)
        log_in(cluster.kubeconfig, directory / "kubeconfig")
        operator = OperatorProcess(directory / "kubeconfig", directory / "log", NAMESPACE, RESYNC_SECONDS="2")
        try:
            kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            operator.start()
            made = Many(kube, engines, operator)
            create(made)
            yield made
        finally:
            operator.close()


def create(many: Many) -> None:
    """Make them, and wait until they are Ready and the operator has nothing left to write."""
    for number in range(DEPLOYMENTS):
        meta = {"name": f"model-{number}", "namespace": NAMESPACE}
        body = {"apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment", "metadata": meta}
        many.kube.apply({**body, "spec": spec(FIRST, replicas=REPLICAS)})

    def ready() -> int:
        conditions = (r.get("status", {}).get("conditions") or () for r in many.resources())
        return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in found) for found in conditions)

    wait_for("all to be Ready", ready, lambda count: count == DEPLOYMENTS, SECONDS)

    def writes() -> float:
        before = many.operator.writes()
        many.wait_asked(many.addresses())
        return many.operator.writes() - before

    wait_for("a resync without a write", writes, lambda count: count == 0, SECONDS, 0)


def test_resyncs_of_all_write_nothing_and_read_each_kind_once(many: Many) -> None:
    addresses = many.addresses()
    assert len(addresses) == DEPLOYMENTS * REPLICAS
    versions = {r["metadata"]["name"]: r["metadata"]["resourceVersion"] for r in many.resources()}
    writes, reads = many.operator.writes(), many.requests("GET")
    passes = many.operator.metric("dsd_operator_reconcile_total")
    many.wait_asked(addresses)
    passes = many.operator.metric("dsd_operator_reconcile_total") - passes
    assert passes >= 2 * DEPLOYMENTS
    assert many.operator.writes() == writes
    assert many.requests("GET") - reads <= READS * (passes + DEPLOYMENTS)  # some passes are under way
    assert {r["metadata"]["name"]: r["metadata"]["resourceVersion"] for r in many.resources()} == versions


def test_a_change_costs_two_writes_and_an_event(many: Many) -> None:
    addresses = many.addresses("model-0")
    costs = []
    for triples in (SECOND, THIRD, FIRST):
        patches, posts = many.requests("PATCH"), many.requests("POST")
        many.wait_put(addresses, many.schedule("model-0", triples))
        many.wait_asked(addresses)
        costs.append((many.requests("PATCH") - patches, many.requests("POST") - posts))
    # On a busy machine a pod may be late, which the status tells, and takes back.
    patches, posts = min(costs)
    assert patches == 2, "the ConfigMap and the status"
    assert posts <= 2, "a token, if the last one is old, and an Event"


def test_a_dead_pod_delays_neither_its_fellows_nor_other_resources(many: Many) -> None:
    dead, *fellows = many.addresses("model-1")
    others = [a for name in ("model-2", "model-3") for a in many.addresses(name)]
    held = many.engines.pods[dead]
    held.dead = True
    asked, before = held.requests, held.hash
    for triples in (SECOND, THIRD, SECOND, FIRST, THIRD):
        for name in ("model-1", "model-2", "model-3"):
            wanted = many.schedule(name, triples)
        many.wait_put([*fellows, *others], wanted)
    assert held.requests > asked
    assert held.hash == before
    held.dead = False
    many.wait_put([dead], wanted)
