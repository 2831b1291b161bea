"""What `kubectl dsd explain` says of pods that nothing is known to be wrong with: the stage that the status says."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, Weight
from kubectl_dsd.explain.verdict import judge
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.reach import Asked
from tests.states import named
from tests.unit.kubectl import test_states

BEGUN: Final = "2030-01-01T00:00:00Z"
LATER: Final = "2030-01-03T00:00:00Z"
NOW: Final = datetime(2030, 1, 3, 0, 1, tzinfo=UTC)


def view(node: str = "n1", gates: Any = (), lost: str = "", **engine: Any) -> PodView:
    """A pod that is not ready; a proxy that runs stands before its engine."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": lost or "2029-12-31T00:00:00Z"}
    states = [{"name": "proxy", "ready": True, "started": True, "state": {"running": {"startedAt": BEGUN}}}]
    states += [{"name": "engine", "ready": False, "restartCount": 0, **engine}] if engine else []
    meta = {"name": "demo-1", "namespace": "team-a", "labels": {}}
    spec = {"nodeName": node, "containers": [{"name": "engine"}], "schedulingGates": list(gates)}
    pod = {"metadata": meta, "spec": spec, "status": {"conditions": [condition], "containerStatuses": states}}
    return PodView(pod, Asked(pod), None)


def explained(state: str, *views: PodView, **fields: Any) -> list[Finding]:
    """The findings about a deployment in this state."""
    facts = test_states.facts(named(state))
    facts.pods, facts.now = list(views), NOW
    for name, value in fields.items():
        setattr(facts, name, value)
    return list(judge(facts).findings)


RUNNING: Final[dict[str, Any]] = {"state": {"running": {"startedAt": BEGUN}}}
CREATING: Final[dict[str, Any]] = {"state": {"waiting": {"reason": "ContainerCreating"}}}


@pytest.mark.parametrize(
    ("state", "pod", "reason", "words"),
    [
        ("pending", view(node=""), "Pending", "wait for a node"),
        ("pulling", view(**CREATING), "ContainerCreating", "pulls the image"),
        ("loading", view(**RUNNING), "Starting", "has been starting for 2d0h of at most 3600 s"),
        ("loading", view(**RUNNING, started=True), "Starting", "container engine runs and is not ready"),
        ("held by a scheduling gate", view(node="", gates=[{"name": "kueue"}]), "SchedulingGated", "holds the pods"),
    ],
)
def test_a_stage_is_no_fault_and_is_told_once(state: str, pod: PodView, reason: str, words: str) -> None:
    (found,) = explained(state, pod)
    assert (found.weight, found.reason) == (Weight.INFO, reason)
    assert words in found.cause
    assert found.fix


def test_a_pod_that_served_is_not_starting() -> None:
    (found,) = explained("degraded", view(**RUNNING, started=True, lost=LATER))
    assert (found.weight, found.reason) == (Weight.ERROR, "Degraded")
    assert "a pod that served is not ready any more: container engine runs and is not ready" in found.cause
    assert "kubectl describe pod demo-1 -n team-a" in found.fix


def test_what_holds_a_pod_up_is_told_whatever_container_is_listed_first() -> None:
    event = {"reason": "FailedMount", "message": "no such claim", "involvedObject": {"name": "demo-1"}}
    (found,) = explained("pulling", view(**CREATING), events=[event])
    assert (found.weight, found.said) == (Weight.ERROR, ("no such claim",))


def test_workers_count() -> None:
    """Of an engine over several nodes; nobody asks them, so nothing else would tell."""
    waiting: dict[str, Any] = {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    found = explained("loading", view(**RUNNING), workers=[view(**waiting)])
    assert (found[0].weight, found[0].reason) == (Weight.ERROR, "ImagePullBackOff")


def test_a_worker_that_is_not_ready_is_one_that_is_waited_for() -> None:
    assert [v.name for v in Facts({"metadata": {}}, workers=[view(**CREATING)]).waiting()] == ["demo-1"]
