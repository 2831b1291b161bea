"""What `kubectl dsd explain` makes of pods of a group that are refused: the words are in Events of a StatefulSet."""

from typing import Any

from kubectl_dsd.explain.check_children import check
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding

TOLD = "pods cannot be created: StatefulSet demo-1f-0 has 0 of 1; `kubectl describe statefulset demo-1f-0` says why"
QUOTA = (
    'create Pod demo-1f-0-1 in StatefulSet demo-1f-0 failed error: pods "demo-1f-0-1" is forbidden: '
    "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
)


def event(message: str, kind: str = "StatefulSet", name: str = "demo-1f-0", reason: str = "FailedCreate") -> Any:
    return {"reason": reason, "message": message, "involvedObject": {"kind": kind, "name": name}}


def found(*events: Any, told: str = TOLD) -> list[Finding]:
    conditions = [{"type": "Ready", "status": "False", "reason": "PodCreationFailed", "message": told}]
    meta = {"name": "demo", "namespace": "team-a", "generation": 1}
    status = {"observedGeneration": 1, "conditions": conditions}
    return list(check(Facts({"metadata": meta, "spec": {}, "status": status}, events=list(events))))


def test_the_newest_refusal_is_told() -> None:
    (finding,) = found(event("older: forbidden"), event(QUOTA), event("made it", reason="SuccessfulCreate"))
    assert finding.objects == ("ResourceQuota few",)
    assert finding.said == (QUOTA,)
    assert "kubectl describe resourcequota few -n team-a" in finding.fix


def test_no_other_object_s_words_are_taken_for_it() -> None:
    assert found(event(QUOTA, name="demo-1f-1"), event(QUOTA, kind="Job"), event(QUOTA, reason="Other")) == []


def test_old_words_are_not_told_once_nothing_is_lacking() -> None:
    assert found(event(QUOTA), told="2 of 2 pods serve") == []
