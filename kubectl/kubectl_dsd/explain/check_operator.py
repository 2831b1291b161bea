"""Does the operator run, and does it look at this resource? Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.status.pods import can_serve, fault_of, is_ready
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, error, info, warning

_PATIENCE_SECONDS: Final = 10.0
"""The operator takes a fraction of a second."""

_WATCHED: Final = "DSD_OPERATOR_WATCH_NAMESPACES"


def check(facts: Facts) -> Iterator[Finding]:
    """Nothing where it runs and has seen the latest spec."""
    running = [operator for operator in facts.operators or () if _available(operator)]
    if facts.meta.get("deletionTimestamp"):
        finalizers = ", ".join(facts.meta.get("finalizers") or ()) or "its children"
        yield warning(
            "Deleting", f"it is being deleted, and waits for {finalizers}", "Wait, or see who set the finalizer."
        )
    if facts.operators and not running:
        yield from _down(facts)
    elif not facts.current:
        yield from _silent(facts, running)
    if len(running) > 1 and len([o for o in running if _watches(o, facts)]) > 1:
        places = ", ".join(f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in running)
        yield warning(
            "TwoOperators",
            f"several operators watch this namespace: {places}",
            "Give each its own namespaces (watchNamespaces), or remove one.",
        )


def _down(facts: Facts) -> Iterator[Finding]:
    """Installed, and not running. While the status is current, what runs goes on, and no change is taken."""
    operator = (facts.operators or [{}])[0]
    name = f"Deployment {operator['metadata']['namespace']}/{operator['metadata']['name']}"
    faults = [fault_of(pod) for pod in facts.operator_pods if can_serve(pod) and not is_ready(pod)]
    said = [fault.message for fault in faults if fault is not None]
    if not (operator.get("spec") or {}).get("replicas", 1):
        cause, fix = "the operator is scaled to zero", f"kubectl scale deployment {operator['metadata']['name']} -n "
        fix += f"{operator['metadata']['namespace']} --replicas=1"
    else:
        cause = "the operator is installed, and none of its pods is ready"
        fix = f"Look at its pods and log: kubectl logs deployment/{operator['metadata']['name']} -n "
        fix += f"{operator['metadata']['namespace']}"
    kind = warning if facts.current else error
    suffix = ": engines go on, and no change is taken" if facts.current else ""
    yield kind("OperatorNotRunning", cause + suffix, fix, name, said=said)


def _silent(facts: Facts, running: list[Any]) -> Iterator[Finding]:
    seconds = facts.changed_seconds_ago()
    if seconds < _PATIENCE_SECONDS:
        yield info(
            "JustChanged", f"the spec changed {seconds:.0f} s ago, and the operator has not answered yet", "Look again."
        )
    elif facts.operators is None:
        yield error(
            "OperatorSilent",
            "the operator has not worked on this resource, and you may not see whether it runs",
            "Ask who administers the cluster whether the DSD operator runs and watches this namespace.",
        )
    elif not facts.operators:
        yield error(
            "OperatorNotInstalled",
            "nobody works on this resource: the CRD is installed, and no DSD operator is",
            "Install the chart dsd-operator. (One that runs outside of the cluster cannot be seen from here.)",
        )
    elif not any(_watches(operator, facts) for operator in running):
        yield error(
            "NamespaceNotWatched",
            f"the operator does not watch the namespace {facts.meta['namespace']}",
            "Add it to the chart's value watchNamespaces.",
        )
    else:
        yield error(
            "OperatorSilent",
            "the operator runs, and has not worked on this resource",
            "Look at its log: kubectl logs -l app.kubernetes.io/name=dsd-operator -n "
            f"{running[0]['metadata']['namespace']}",
        )


def _available(operator: Mapping[str, Any]) -> bool:
    return bool((operator.get("status") or {}).get("availableReplicas"))


def _watches(operator: Mapping[str, Any], facts: Facts) -> bool:
    template = ((operator.get("spec") or {}).get("template") or {}).get("spec") or {}
    variables = [v for container in template.get("containers") or () for v in container.get("env") or ()]
    named = next((str(v.get("value") or "") for v in variables if v.get("name") == _WATCHED), "")
    namespaces = {part.strip() for part in named.split(",") if part.strip()}
    return not namespaces or facts.meta["namespace"] in namespaces
