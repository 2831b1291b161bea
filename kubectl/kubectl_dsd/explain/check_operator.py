"""Does the operator run, and does it look at this resource? Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.status.pods import can_serve, fault_of, is_ready
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, error, info, warning
from kubectl_dsd.explain.operators import available, place

_PATIENCE_SECONDS: Final = 10.0
"""The operator takes a fraction of a second."""


def check(facts: Facts) -> Iterator[Finding]:
    """Nothing where it runs and has seen the latest spec. Operators of other namespaces do not count."""
    here = facts.responsible()
    running = [operator for operator in here if available(operator)]
    if facts.meta.get("deletionTimestamp"):
        finalizers = ", ".join(facts.meta.get("finalizers") or ()) or "its children"
        yield warning(
            "Deleting", f"it is being deleted, and waits for {finalizers}", "Wait, or see who set the finalizer."
        )
    if here and not running:
        yield from _down(facts, here[0])
    elif not facts.current:
        yield from _silent(facts, running)
    if len(running) > 1:
        yield warning(
            "TwoOperators",
            f"several operators watch this namespace: {', '.join(map(place, running))}",
            "Give each its own namespaces (watchNamespaces), or remove one.",
        )


def _down(facts: Facts, operator: Mapping[str, Any]) -> Iterator[Finding]:
    """Installed, and not running. While the status is current, what runs goes on, and no change is taken."""
    namespace, name = operator["metadata"]["namespace"], operator["metadata"]["name"]
    faults = [fault_of(pod) for pod in facts.responsible_pods() if can_serve(pod) and not is_ready(pod)]
    said = [fault.message for fault in faults if fault is not None]
    if not (operator.get("spec") or {}).get("replicas", 1):
        cause = "the operator is scaled to zero"
        fix = f"kubectl scale deployment {name} -n {namespace} --replicas=1"
    else:
        cause = "the operator is installed, and none of its pods is ready"
        fix = f"Look at its pods and log: kubectl logs deployment/{name} -n {namespace}"
    kind = warning if facts.current else error
    suffix = ": engines go on, and no change is taken" if facts.current else ""
    yield kind("OperatorNotRunning", cause + suffix, fix, f"Deployment {place(operator)}", said=said)


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
    elif not running:
        yield error(
            "NamespaceNotWatched",
            f"no operator watches the namespace {facts.meta['namespace']} "
            f"(there is {', '.join(map(place, facts.operators))})",
            "Add it to the chart's value watchNamespaces.",
        )
    else:
        yield error(
            "OperatorSilent",
            "the operator runs, and has not worked on this resource",
            f"Look at its log: kubectl logs deployment/{running[0]['metadata']['name']} -n "
            f"{running[0]['metadata']['namespace']}",
        )
