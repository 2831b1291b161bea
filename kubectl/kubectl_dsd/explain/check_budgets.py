"""PodDisruptionBudgets that meet on one pod: the API server then refuses to evict it, whatever they allow. Pure."""

from collections.abc import Iterator

from dsd_operator.status.pods import can_serve
from kubectl_dsd.cluster import Json
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, warning
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.policies import selects


def check(facts: Facts) -> Iterator[Finding]:
    """Name them all, and what to delete."""
    met = [
        found for view in (*facts.pods, *facts.workers) if can_serve(view.pod) and len(found := _over(facts, view)) > 1
    ]
    names = sorted({str(budget["metadata"]["name"]) for budgets in met for budget in budgets})
    if names:
        yield warning(
            "SeveralDisruptionBudgets",
            f"more than one PodDisruptionBudget selects the pods ({', '.join(names)}), so nothing can evict them: "
            "drains, node upgrades and the cluster's autoscaler get an error",
            _fix(facts, [budget for budgets in met for budget in budgets], names),
            *(f"PodDisruptionBudget {name}" for name in names),
        )


def _over(facts: Facts, view: PodView) -> list[Json]:
    """The budgets that select a pod. Without a selector one selects nothing, with an empty one everything."""
    labels = view.pod["metadata"].get("labels") or {}
    selectors = [(budget, (budget.get("spec") or {}).get("selector")) for budget in facts.budgets]
    return [budget for budget, selector in selectors if selector is not None and selects(selector, labels)]


def _fix(facts: Facts, budgets: list[Json], names: list[str]) -> str:
    ours = {str(budget["metadata"]["name"]) for budget in budgets if _is_ours(facts, budget)}
    where = f"-n {facts.meta['namespace']}"
    if not ours:
        return f"Keep one of them: kubectl delete pdb NAME {where}"
    others = " ".join(name for name in names if name not in ours)
    return f"Keep the operator's: kubectl delete pdb {others} {where}. Or set spec.podDisruptionBudget.enabled: false."


def _is_ours(facts: Facts, budget: Json) -> bool:
    owners = budget["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == facts.meta["uid"] for owner in owners)
