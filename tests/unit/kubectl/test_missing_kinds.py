"""What `kubectl dsd explain` makes of kinds that a cluster does not have, and of objects in the way of any kind."""

import pytest

from dsd_operator.status.reasons import Reason
from kubectl_dsd.explain.check_children import check
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, Weight

MISSING = "LeaderWorkerSet demo-0a1b2c3d4e: this cluster has no LeaderWorkerSet (leaderworkerset.x-k8s.io): install it"


def found(ready: tuple[Reason, str], progressing: Reason) -> Finding:
    conditions = [
        {"type": "Ready", "status": "False", "reason": ready[0].value, "message": ready[1]},
        {"type": "Progressing", "status": "False", "reason": progressing.value, "message": ""},
    ]
    meta = {"name": "demo", "namespace": "team-a", "generation": 1}
    status = {"observedGeneration": 1, "conditions": conditions}
    (one,) = check(Facts({"metadata": meta, "spec": {}, "status": status}))
    return one


@pytest.mark.parametrize(
    ("progressing", "follows"),
    [(Reason.API_MISSING, "no pod can be made"), (Reason.ROLLED_OUT, "pods and schedule go on")],
)
def test_a_missing_kind_is_told_with_what_follows(progressing: Reason, follows: str) -> None:
    finding = found((Reason.API_MISSING, MISSING), progressing)
    assert (finding.weight, finding.reason, finding.said) == (Weight.ERROR, "ApiMissing", (MISSING,))
    assert follows in finding.cause


@pytest.mark.parametrize("kind", ["Deployment", "LeaderWorkerSet", "HTTPRoute", "InferencePool", "PodDisruptionBudget"])
def test_an_object_in_the_way_is_named_whatever_its_kind(kind: str) -> None:
    message = f"{kind} demo-1: a {kind} of this name exists and is not ours. It is left alone: delete or rename it"
    finding = found((Reason.FOREIGN_OBJECT, message), Reason.FOREIGN_OBJECT)
    assert finding.objects == (f"{kind} demo-1",)
    assert f"kubectl delete {kind.lower()} demo-1 -n team-a" in finding.fix
