"""PodDisruptionBudgets that meet on one pod. What the API server makes of them is in test_explain.py."""

from typing import Any

import pytest

from kubectl_dsd.explain.check_budgets import check
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.reach import Asked

META: Any = {"name": "demo", "namespace": "llm", "uid": "u1"}
LABELS = {"app": "x", "tier": "gpu"}


def pods(**status: Any) -> list[PodView]:
    """One pod."""
    meta = {"name": "p", "namespace": "llm", "labels": LABELS, "uid": "p1"}
    pod = {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Running", **status}}
    return [PodView(pod, Asked(pod), True)]


def budget(name: str, selector: Any, owner: str = "") -> Any:
    """A budget with this selector."""
    owners = [{"uid": owner}] if owner else []
    return {"metadata": {"name": name, "ownerReferences": owners}, "spec": {"selector": selector}}


OURS = budget("demo", {"matchLabels": {"app": "x"}}, "u1")


@pytest.mark.parametrize(
    ("selector", "meets"),
    [
        ({"matchLabels": {"tier": "gpu"}}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({}, True),
        (None, False),
        ({"matchLabels": {"tier": "cpu"}}, False),
    ],
)
def test_two_that_select_a_pod_are_named(selector: Any, meets: bool) -> None:
    found = [*check(Facts({"metadata": META}, pods=pods(), budgets=[OURS, budget("mine", selector)]))]
    assert bool(found) is meets
    for one in found:
        assert one.objects == ("PodDisruptionBudget demo", "PodDisruptionBudget mine")
        assert "kubectl delete pdb mine -n llm." in one.fix
        assert "spec.podDisruptionBudget.enabled: false" in one.fix


def test_without_ours_one_of_them_is_to_be_kept() -> None:
    two = [budget("a", {}), budget("b", {"matchLabels": {"app": "x"}})]
    (found,) = check(Facts({"metadata": META}, pods=pods(), budgets=two))
    assert found.fix == "Keep one of them: kubectl delete pdb NAME -n llm"


def test_a_pod_that_has_ended_counts_for_nothing() -> None:
    two = [OURS, budget("mine", {})]
    assert not [*check(Facts({"metadata": META}, pods=pods(phase="Succeeded"), budgets=two))]
    assert not [*check(Facts({"metadata": META}, budgets=two))]
