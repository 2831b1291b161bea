"""Parts of the node restart or go away under running pods: these keep serving, and afterwards everything goes on.

Only on the local node, whose components are processes of this machine. etcd and API server restart in the integration
tests too, where it costs little.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tests.e2e.fleet import MAX_NEW_TOKENS, PROMPTS
from tests.e2e.outage import is_ready
from tools.cluster import full_node
from tools.cluster.node import NODE_NAME
from tools.testbed.engine import in_use
from tools.testbed.handle import CHANGE_TIMEOUT, START_TIMEOUT, Handle, identity
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.load import Load
from tools.testbed.waiting import wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("DSD_KUBECONFIG" in os.environ, reason="components of another cluster are not ours to stop"),
]

STREAMS: Final = 2
GRACE_SECONDS: Final = 180.0
"""More than the control plane waits for a silent kubelet, 50 s."""

_schedules = cycle([from_triples([(1, 4, 2), (5, 64, 0)]), from_triples([(1, 6, 1), (7, 64, 3)])])
"""Each fault is followed by a change to another one."""


@pytest.mark.parametrize(
    "component",
    [
        "kubelet",
        "containerd",
        pytest.param("kube-apiserver", marks=pytest.mark.long),
        pytest.param("etcd", marks=pytest.mark.long),
        pytest.param("kube-controller-manager", marks=pytest.mark.long),
        pytest.param("kube-scheduler", marks=pytest.mark.long),
        pytest.param("kube-proxy", marks=pytest.mark.long),
    ],
)
def test_a_component_restarts_under_a_serving_engine(
    shared: Handle, installation: Installation, component: str
) -> None:
    with untouched(shared, installation):
        full_node.restart(component)
        change(shared)


@pytest.mark.long
def test_both_halves_of_the_control_plane_are_away_at_the_same_time(shared: Handle, installation: Installation) -> None:
    with untouched(shared, installation):
        with full_node.stopped("kube-apiserver"):
            full_node.restart("etcd")
        change(shared)


@pytest.mark.long
def test_a_node_that_is_not_ready_is_told_and_its_pods_come_back_as_they_were(
    shared: Handle, installation: Installation
) -> None:
    with untouched(shared, installation):
        with full_node.stopped("kubelet"):
            wait_for("the node to be NotReady", lambda: node_ready(shared), lambda s: s == "Unknown", GRACE_SECONDS)
            ready = wait_for(
                "Ready=False", lambda: shared.condition("Ready"), lambda c: c.get("status") == "False", CHANGE_TIMEOUT
            )
            assert not is_ready(shared.pod())
            assert shared.condition("Available")["status"] == "False"
            assert ready["reason"] != "RolledOut"
            assert shared.engine().healthy(), "what nobody watches serves all the same"
        wait_for("the node to be Ready", lambda: node_ready(shared), lambda s: s == "True", CHANGE_TIMEOUT)
        shared.wait_ready()
        assert shared.condition("Available")["status"] == "True"
        change(shared)


@contextmanager
def untouched(handle: Handle, installation: Installation) -> Iterator[None]:
    """Streams go on through the block; after it the engine and the operator are the same processes, and all is well."""
    engine, operator = identity(handle.pod()), containers(installation)
    generation = handle.child("Deployment")["metadata"]["generation"]
    with Load([handle.engine().url], PROMPTS, STREAMS, MAX_NEW_TOKENS) as load:
        yield
        answered = len(load.answers)
        wait_for("more answers", lambda: len(load.answers), lambda n: n >= answered + STREAMS, CHANGE_TIMEOUT)
    assert load.failures == []
    handle.wait_ready()
    assert identity(handle.pod()) == engine
    assert handle.child("Deployment")["metadata"]["generation"] == generation
    assert containers(installation) == operator


def change(handle: Handle) -> None:
    """A change of the schedule reaches the engine."""
    schedule = next(_schedules)
    handle.set_schedule(schedule)
    handle.wait_applied(schedule, START_TIMEOUT)
    assert in_use(handle.engine().status()) == {schedule_hash(schedule)}


def containers(installation: Installation) -> dict[str, int]:
    """Restarts of the operator's containers by the uid of their pods."""
    return {
        pod["metadata"]["uid"]: sum(c["restartCount"] for c in pod["status"].get("containerStatuses", []))
        for pod in installation.operator_pods()
    }


def node_ready(handle: Handle) -> str:
    """The status of the node's condition Ready."""
    node: Json = handle.kube.get("Node", None, NODE_NAME) or {}
    found = (c["status"] for c in node.get("status", {}).get("conditions", []) if c["type"] == "Ready")
    return str(next(found, ""))
