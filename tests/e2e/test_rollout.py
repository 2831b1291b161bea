"""A change of the envelope rolls the pods exactly once; a change of the schedule never does."""

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tools.testbed.engine import in_use
from tools.testbed.handle import START_TIMEOUT, Handle, identity, names_of
from tools.testbed.kube import Json
from tools.testbed.manifests import MAX_NUM_SEQS
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.e2e


def test_a_restart_requiring_change_rolls_once_and_a_schedule_change_never(shared: Handle) -> None:
    generation, replica_sets = footprint(shared)
    pod = shared.pod()
    smaller = MAX_NUM_SEQS // 2

    shared.patch({"engine": {"maxNumSeqs": smaller}})
    wait_for(
        "the roll-out to end",
        lambda: shared.child("Deployment"),
        lambda deployment: is_rolled_out(deployment, generation),
        START_TIMEOUT,
        0.5,
    )
    shared.wait_ready()

    rolled, rolled_sets = footprint(shared)
    assert (rolled, len(rolled_sets - replica_sets)) == (generation + 1, 1)
    new = shared.pod()
    assert new["metadata"]["uid"] != pod["metadata"]["uid"]
    envelope = shared.engine().status().envelope
    assert envelope is not None
    assert envelope.max_num_seqs == smaller

    # Only passes of the operator that came after the roll-out can show that it does not roll again.
    for k in (0, 3):
        schedule = from_triples([(1, 64, k)])
        shared.set_schedule(schedule)
        shared.wait_applied(schedule)
        assert in_use(shared.engine().status()) == {schedule_hash(schedule)}
    assert footprint(shared) == (rolled, rolled_sets)
    assert identity(shared.pod()) == identity(new) == (new["metadata"]["uid"], 0)


def footprint(handle: Handle) -> tuple[int, set[str]]:
    """What a roll-out changes: the Deployment's generation and its ReplicaSets."""
    return int(handle.child("Deployment")["metadata"]["generation"]), names_of(handle.children("ReplicaSet"))


def is_rolled_out(deployment: Json, before: int) -> bool:
    """Whether a Deployment is past generation `before` and has only new, ready pods."""
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    return bool(
        deployment["metadata"]["generation"] > before
        and status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("readyReplicas") == status.get("replicas") == wanted
    )
