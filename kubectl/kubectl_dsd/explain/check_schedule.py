"""Why pods do not use the schedule, or nobody can tell. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.render.arguments import PORT
from dsd_operator.status.pods import can_serve, is_up
from dsd_operator.status.reasons import Reason
from dsd_operator.status.schedule import NO_TOKEN
from kubectl_dsd.explain.facts import Facts, pod_object
from kubectl_dsd.explain.finding import Finding, error, info, warning
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.policies import ingress_policies, lets_in

_MESH: Final = frozenset({"istio-proxy", "linkerd-proxy", "kuma-sidecar", "envoy-sidecar", "consul-dataplane"})
"""Containers that a service mesh puts into pods."""


def check(facts: Facts) -> Iterator[Finding]:
    """By the operator's word about each pod, and by the engines' own."""
    late = _late(facts)
    for view in facts.pods:
        if not (can_serve(view.pod) and is_up(view.pod)):
            continue
        status = view.asked.status or {}
        yield from _by_operator(facts, view, late.get(view.name, ""), status)
        if status.get("mode") == "off" and view.name not in late:
            yield _plugin_off(view, status)
        for fault in status.get("faults") or ():
            yield warning(
                "EngineFault", f"the engine reports a fault ({fault.get('source')})", "See what it says.",
                pod_object(view), said=[str(fault.get("message"))],
            )  # fmt: skip
        yield from _from_here(view, late)


def _late(facts: Facts) -> dict[str, str]:
    entries = (facts.status.get("schedule") or {}).get("outOfSync") or () if facts.current else ()
    return {str(entry.get("pod")): str(entry.get("reason")) for entry in entries}


def _by_operator(facts: Facts, view: PodView, reason: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    told = str(facts.condition("ScheduleApplied").get("message") or "")
    match reason:
        case Reason.REFUSED_BY_ENGINE:
            yield _refused(view, status, told)
        case Reason.RUNTIME_PLUGIN_OFF:
            yield _plugin_off(view, status)
        case Reason.TOKEN_REFUSED:
            yield _no_token(view, told)
        case Reason.POD_UNREACHABLE:
            yield _unreachable(facts, view, told)


def _refused(view: PodView, status: Mapping[str, Any], told: str) -> Finding:
    message = str((status.get("lastError") or {}).get("message") or told)
    allowed = (status.get("envelope") or {}).get("allowedTokens")
    possible = f" K may be {', '.join(map(str, allowed))} there." if allowed else ""
    return error(
        Reason.REFUSED_BY_ENGINE,
        "the engine refuses the schedule, and goes on with the one before",
        f"Set another: kubectl dsd schedule set NAME RANGES.{possible}",
        pod_object(view),
        said=[message],
    )


def _no_token(view: PodView, told: str) -> Finding:
    """Either side may be the one that refuses; the operator's words say which."""
    if NO_TOKEN in told:
        cause = "the API server gives the operator no token for the pods"
        fix = "Do as its message says: the operator's role must let it create serviceaccounts/token of its own account."
    else:
        cause = "pods refuse the operator's token"
        fix = "Wait: keys are renewed. If it stays so, look at the operator's log and at the nodes' clocks."
    consequence = "the mounted file brings the schedule within about a minute"
    return warning(Reason.TOKEN_REFUSED, f"{cause}; {consequence}", fix, pod_object(view), said=[told])


def _plugin_off(view: PodView, status: Mapping[str, Any]) -> Finding:
    versions = status.get("versions") or {}
    vllm = f" {versions['vllm']}" if versions.get("vllm") else ""
    in_use = view.in_sync is True
    kind = warning if in_use else error
    return kind(
        Reason.RUNTIME_PLUGIN_OFF,
        f"this vLLM{vllm} takes a schedule at start only: the runtime plugin is off",
        "Change what its message names, such as the image's vLLM, or delete the pods one by one: they start with the "
        "schedule.",
        pod_object(view),
        said=[str((status.get("lastError") or {}).get("message") or "")],
    )


def _unreachable(facts: Facts, view: PodView, told: str) -> Finding:
    names = _shutting_out(facts, view)
    mesh = [c["name"] for c in (view.pod.get("spec") or {}).get("containers") or () if c.get("name") in _MESH]
    consequence = "the mounted file brings the schedule within about a minute"
    if names:
        namespace = " or ".join(facts.operator_namespaces) or "the operator's namespace"
        return warning(
            Reason.POD_UNREACHABLE,
            f"the operator is blocked by the NetworkPolicy {', '.join(names)}; {consequence}",
            "To have changes within a second, allow port 8000 from the namespace labelled "
            f"kubernetes.io/metadata.name={namespace} (spec.networkPolicy of the resource does).",
            pod_object(view),
            said=[told],
        )
    if mesh:
        return warning(
            Reason.POD_UNREACHABLE,
            f"the operator cannot reach the pods through the mesh's sidecar {mesh[0]}; {consequence}",
            "To have changes within a second, exclude port 8000 from the mesh for plain traffic of the operator.",
            pod_object(view),
            said=[told],
        )
    return warning(
        Reason.POD_UNREACHABLE,
        f"the operator cannot reach the pods on port 8000; {consequence}",
        "Check the network between the operator's node and the pods'.",
        pod_object(view),
        said=[told],
    )


def _shutting_out(facts: Facts, view: PodView) -> list[str]:
    """Policies that guard the pod and keep a pod of the operator from the engine's port; all that guard it where the
    operator's pods are unknown."""
    names = ingress_policies(facts.policies, view.pod)
    peers = [pod for pod in facts.responsible_pods() if can_serve(pod)]
    labels = [facts.operator_namespaces[peer["metadata"]["namespace"]] for peer in peers]
    allowed = [lets_in(facts.policies, view.pod, *each, PORT) for each in zip(peers, labels, strict=True)]
    return [] if peers and all(allowed) else names


def _from_here(view: PodView, late: Mapping[str, str]) -> Iterator[Finding]:
    """This command's own way to the engine: no trouble of the deployment."""
    if view.asked.status is not None or not view.asked.problem:
        return
    if view.asked.policy:
        yield info(
            "BlockedByPolicy",
            f"this command could not ask the engines: blocked by the NetworkPolicy {view.asked.policy}, as it seems",
            "Allow the API server's addresses in it to see more here (of the resource's own policy: an ipBlock in "
            "spec.networkPolicy.clients); serving does not need that.",
            pod_object(view),
        )
    elif view.name not in late:
        yield info("NotAsked", f"this command could not ask the engines: {view.asked.problem}", "", pod_object(view))
