"""Deleting with the operator down: owner references do it, nothing waits for a finalizer, nothing is left."""

from functools import partial

import pytest

from tests.e2e.fleet import NAMESPACE, Fleet
from tests.e2e.outage import operator_down
from tools.testbed.handle import CHANGE_TIMEOUT, Handle
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

CHILD_KINDS = ("Deployment", "ReplicaSet", "Pod", "Service", "ConfigMap", "ServiceAccount")

pytestmark = pytest.mark.e2e


def test_the_resource_and_its_namespace_go_while_the_operator_is_down(shared: Handle, fleet: Fleet) -> None:
    resource = shared.resource()
    assert not resource["metadata"].get("finalizers")
    assert all(shared.children(kind) for kind in CHILD_KINDS), "the test would see nothing go"

    with operator_down(fleet.installation):
        fleet.kube.delete("DSDDeployment", NAMESPACE, shared.name)
        for kind in CHILD_KINDS:
            wait_for(f"{kind}s of {shared.name} to go", partial(shared.children, kind), is_empty, CHANGE_TIMEOUT)
        assert fleet.kube.list("DSDDeployment", NAMESPACE), "the namespace should not be empty yet"
        fleet.kube.remove_namespace(NAMESPACE, 2 * CHANGE_TIMEOUT)

    assert [r for r in fleet.kube.list("DSDDeployment", None) if r["metadata"]["namespace"] == NAMESPACE] == []


def is_empty(objects: list[Json]) -> bool:
    """Whether there are none."""
    return not objects
