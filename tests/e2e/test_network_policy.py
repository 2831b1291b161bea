"""A resource's NetworkPolicy, enforced on the node by kube-network-policies: who comes in, and who does not."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from dsd_runtime.schedule import from_triples
from tests.e2e.fleet import NAMESPACE, Fleet
from tests.e2e.visitors import Visitor, visitors
from tools.cluster import network_policies
from tools.testbed.engine import pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.e2e

STRANGERS: Final = "dsd-e2e-strangers"
MONITORING: Final = "dsd-e2e-monitoring"
PROMETHEUS: Final = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}]

Visitors = Mapping[str, Visitor]


@pytest.fixture(scope="module")
def guests(fleet: Fleet) -> Iterator[Visitors]:
    """A pod beside the engine, one in each of two other namespaces, and a network that enforces policies."""
    image = fleet.kube.get("Deployment", fleet.installation.namespace, fleet.installation.deployment)
    assert image is not None
    operator = image["spec"]["template"]["spec"]["containers"][0]["image"]
    with network_policies.running(), visitors(fleet.kube, operator, NAMESPACE, STRANGERS, MONITORING) as made:
        yield made


@pytest.fixture
def guarded(shared: Handle) -> Iterator[Handle]:
    """The shared engine with a policy of its own, which goes with the test."""
    policy(shared, enabled=True)
    yield shared
    shared.patch({"networkPolicy": None})
    wait_for("the policy to go", lambda: shared.children("NetworkPolicy"), lambda found: not found, CHANGE_TIMEOUT)


def policy(handle: Handle, **wanted: Any) -> None:
    """Change `spec.networkPolicy`, and wait until the operator has done it."""
    handle.patch({"networkPolicy": wanted})
    handle.wait_ready()


def come_in(guests: Visitors, handle: Handle) -> set[str]:
    """Namespaces whose pod reaches the engine, by its Service and by its own address alike; one that comes in by one of
    them alone is told with it, and is neither in nor out."""
    addresses = [f"{handle.status()['url']}/health", f"{pod_url(handle.pod()['status']['podIP'])}/metrics"]
    tries = [(name, url) for name in guests for url in addresses]
    with ThreadPoolExecutor(len(tries)) as pool:
        answers = dict(zip(tries, pool.map(lambda t: guests[t[0]].reaches(t[1]), tries), strict=True))
    whole = {name for name in guests if all(answers[name, url] for url in addresses)}
    return whole | {f"{name} by {url}" for (name, url), reached in answers.items() if reached and name not in whole}


def wait_in(guests: Visitors, handle: Handle, *namespaces: str) -> None:
    """Policies take effect a moment after they are written."""
    wait_for(
        f"{namespaces} to come in", lambda: come_in(guests, handle), lambda n: n == set(namespaces), CHANGE_TIMEOUT
    )


def test_without_a_policy_everybody_comes_in(shared: Handle, guests: Visitors) -> None:
    """So what follows is the policy's doing and not the network's."""
    assert come_in(guests, shared) == {NAMESPACE, STRANGERS, MONITORING}


def test_the_operator_and_clients_come_in_strangers_do_not_and_prometheus_only_when_it_is_named(
    guarded: Handle, guests: Visitors
) -> None:
    before = guarded.pod()
    wait_in(guests, guarded, NAMESPACE)

    schedule = from_triples([(1, 3, 2), (4, 64, 1)])
    guarded.set_schedule(schedule)
    status = guarded.wait_applied(schedule)
    assert status["schedule"]["podsUnknown"] == 0, "the operator's push comes in"

    policy(guarded, enabled=True, monitoring=PROMETHEUS)
    wait_in(guests, guarded, NAMESPACE, MONITORING)

    policy(guarded, enabled=True, monitoring=None, clients=[])
    wait_in(guests, guarded)

    # The kubelet's probes are never shut out, and no change of the policy touches a pod.
    assert identity(guarded.pod()) == identity(before)
    guarded.wait_ready()
