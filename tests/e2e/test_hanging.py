"""A real engine that hangs is ended by its liveness probe, and waits for no request: those that hang have no end.

It takes the probe's minute, and one more start.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tools.testbed import manifests
from tools.testbed.engine import in_use
from tools.testbed.handle import START_TIMEOUT, Handle, identity, restarts
from tools.testbed.install import Installation
from tools.testbed.processes import hanging, process_of
from tools.testbed.site import site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NAMESPACE: Final = "dsd-hanging"
DRAIN_SECONDS: Final = 3600
FIRST: Final = from_triples([(1, 64, 3)])
SECOND: Final = from_triples([(1, 64, 1)])


@pytest.fixture
def patient(installation: Installation) -> Iterator[Handle]:
    """One engine, Ready, whose running requests have an hour to end."""
    with site(installation.kube, NAMESPACE):
        manifest = manifests.dsd_deployment(NAMESPACE, "patient", TARGET, DRAFTERS["ngram"], FIRST)
        manifest["spec"]["rollout"] = {"drainTimeoutSeconds": DRAIN_SECONDS}
        installation.kube.apply(manifest)
        handle = Handle(installation.kube, NAMESPACE, "patient")
        handle.wait_ready()
        yield handle


def test_an_engine_that_hangs_is_ended_in_a_small_part_of_the_time_to_drain(patient: Handle) -> None:
    pod = patient.pod()
    if process_of(pod) is None:
        pytest.skip("a pod's processes can only be stopped where they are this machine's")
    uid, before = identity(pod)
    with hanging(pod):
        wait_for("a restart of the engine", patient.pod, lambda pod: restarts(pod) > before, DRAIN_SECONDS / 6, 0.5)
    patient.set_schedule(SECOND)
    patient.wait_ready(START_TIMEOUT)
    patient.wait_applied(SECOND)
    assert identity(patient.pod()) == (uid, before + 1)
    assert in_use(patient.engine().status()) == {schedule_hash(SECOND)}
