"""Why the scheduler finds no node, in words about this deployment's fields. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.status.pods import Fault
from kubectl_dsd.explain.facts import Facts, pod_object
from kubectl_dsd.explain.finding import Finding, error
from kubectl_dsd.pod_view import PodView

_INSUFFICIENT: Final = re.compile(r"Insufficient ([a-z0-9./-]+[a-z0-9])")
_PLAIN: Final = (
    (
        re.compile(r"untolerated taint"),
        "nodes have taints that the pods do not tolerate",
        "Add tolerations to podTemplate.spec.tolerations.",
    ),
    (
        re.compile(r"didn't match Pod's node (affinity|selector)|node affinity/selector"),
        "no node fits the pods' node selector or affinity",
        "Change podTemplate.spec.nodeSelector or affinity, or label a node.",
    ),
    (
        re.compile(r"persistentvolumeclaim|PersistentVolume|volume node affinity|unbound immediate", re.IGNORECASE),
        "a volume claim of the pods is missing or not bound",
        "Create the claim that podTemplate.spec.volumes names, or see why it is not bound: kubectl get pvc",
    ),
    (
        re.compile(r"free ports"),
        "the host port that the pods ask for is taken on every node",
        "Remove hostPort or hostNetwork from spec.podTemplate.",
    ),
    (
        re.compile(r"unschedulable"),
        "nodes are cordoned",
        "kubectl get nodes shows which; kubectl uncordon NODE",
    ),
    (
        re.compile(r"resourceclaim", re.IGNORECASE),
        "a resource claim of the pods is missing or not allocated",
        "Create the claim that spec.resources.claims names: kubectl get resourceclaims",
    ),
    (
        re.compile(r"anti-affinity|topology spread"),
        "the pods' anti-affinity or topology spread leaves no node",
        "Loosen it in spec.podTemplate, or add nodes.",
    ),
)


def unschedulable(facts: Facts, view: PodView, fault: Fault) -> Finding:
    """All that the scheduler says, with what to do about each."""
    causes, fixes = zip(*(list(_causes(facts, view, fault.message)) or [_unknown()]), strict=True)
    return error(
        fault.reason,
        f"no node has room for the pods: {'; '.join(causes)}",
        " ".join(fixes),
        pod_object(view),
        said=[fault.message],
    )


def _unknown() -> tuple[str, str]:
    return "see the scheduler's words", "Change what they name."


def _causes(facts: Facts, view: PodView, message: str) -> Iterator[tuple[str, str]]:
    for resource in dict.fromkeys(_INSUFFICIENT.findall(message)):
        yield _short_of(facts, view, resource)
    for pattern, cause, fix in _PLAIN:
        if pattern.search(message):
            yield cause, fix


def _short_of(facts: Facts, view: PodView, resource: str) -> tuple[str, str]:
    wanted = _asked(view, resource)
    text = f"{wanted} of {resource} asked for" if wanted else f"{resource} is short"
    if facts.nodes is not None and "/" in resource and not any(resource in _allocatable(n) for n in facts.nodes):
        return (
            f"no node offers {resource} at all ({text})",
            "Add nodes with it, or install its device plugin; else take it out of spec.resources.",
        )
    largest = _largest(facts, resource)
    most = f", the largest node has {largest}" if largest else ""
    return f"not enough {resource} free ({text}{most})", "Lower spec.resources, free some, or add nodes."


def _asked(view: PodView, resource: str) -> str:
    """What one pod's containers ask for, as they write it."""
    found = []
    for container in (view.pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        value = (resources.get("requests") or {}).get(resource) or (resources.get("limits") or {}).get(resource)
        if value is not None:
            found.append(str(value))
    return " + ".join(found)


def _largest(facts: Facts, resource: str) -> str:
    """Only where there is one node, or all are alike: quantities in several spellings are not compared here."""
    values = {str(_allocatable(node)[resource]) for node in facts.nodes or () if resource in _allocatable(node)}
    return values.pop() if len(values) == 1 else ""


def _allocatable(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (node.get("status") or {}).get("allocatable") or {}
    return found
