"""A pod without the schedule for want of a token: the pod refuses it, or the API server gives none."""

import pytest

from kubectl_dsd.explain.finding import Finding, Weight
from kubectl_dsd.explain.verdict import judge
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.reach import Asked
from tests.states import named
from tests.unit.kubectl import test_states


def explained(told: str) -> Finding:
    """The finding where the operator said this of its pod."""
    facts = test_states.facts(named("token refused"))
    facts.deployment["status"]["schedule"]["outOfSync"] = [{"pod": "demo-1", "reason": "TokenRefused"}]
    for condition in facts.deployment["status"]["conditions"]:
        condition["message"] = told
    meta = {"name": "demo-1", "namespace": "team-a", "labels": {}}
    pod = {"metadata": meta, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    facts.pods = [PodView(pod, Asked(pod), None)]
    (found,) = (f for f in judge(facts).findings if f.weight is Weight.WARNING)
    return found


@pytest.mark.parametrize(
    ("told", "cause", "fix"),
    [
        (
            "pod demo-1: no token for the pod: forbidden",
            "the API server gives the operator no token",
            "operator's role",
        ),
        ("pod demo-1: the signature does not fit", "pods refuse the operator's token", "clocks"),
    ],
)
def test_it_is_told_who_refuses(told: str, cause: str, fix: str) -> None:
    found = explained(told)
    assert cause in found.cause
    assert fix in found.fix
    assert found.said == (told,)
