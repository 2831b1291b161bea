"""What keeps pods from serving, and what ended those that serve again. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.status.crashes import last_lines
from dsd_operator.status.pods import Fault, can_serve, fault_of, is_ready
from dsd_operator.status.reasons import Reason
from dsd_runtime.causes import KNOWN, OFFLINE, Cause, known_cause
from kubectl_dsd.ages import parse
from kubectl_dsd.explain import check_nodes, check_starting
from kubectl_dsd.explain.causes import image_cause
from kubectl_dsd.explain.facts import Facts, pod_object
from kubectl_dsd.explain.finding import Finding, error, info, warning
from kubectl_dsd.pod_view import PodView, restarts
from kubectl_dsd.policies import egress_policies

_CONTAINER: Final = re.compile(r"^container ([^:]+): ")
_MISSING: Final = re.compile(r'(secret|configmap) "([^"]+)" not found')
_CRASHES: Final = frozenset({Reason.CRASH_LOOP_BACK_OFF, *(Reason(cause.reason) for cause in KNOWN)})
_TERMINATING_SECONDS: Final = 120.0
"""Beyond its grace period; then its node is gone, or something holds it."""


def check(facts: Facts) -> Iterator[Finding]:
    """One pod after the other; `together` joins what several have."""
    for view in (*facts.pods, *facts.workers):
        if view.pod["metadata"].get("deletionTimestamp"):
            yield from _terminating(facts, view)
        elif not can_serve(view.pod):
            yield from _ended(view)
        elif is_ready(view.pod):
            yield from _restarted(view)
        else:
            yield from _waiting(facts, view)


def _waiting(facts: Facts, view: PodView) -> Iterator[Finding]:
    fault = fault_of(view.pod)
    if fault is None:
        yield from check_starting.check(facts, view)
    else:
        yield _fault(facts, view, fault)


def _fault(facts: Facts, view: PodView, fault: Fault) -> Finding:
    match fault.reason:
        case Reason.UNSCHEDULABLE:
            return check_nodes.unschedulable(facts, view, fault)
        case Reason.SCHEDULING_GATED:
            return _gated(view, fault)
        case Reason.IMAGE_PULL_BACK_OFF:
            return _image(view, fault)
        case Reason.CONTAINER_CONFIG_ERROR:
            return _config(facts, view, fault)
        case Reason.OOM_KILLED:
            return _memory(view, fault)
        case Reason.STARTUP_TIMEOUT:
            return _too_slow(facts, view, fault)
        case reason if reason in _CRASHES:
            return _crash(facts, view, fault)
    cause, fix = "a container cannot be created or started", "See the kubelet's words, and spec.podTemplate."
    return error(fault.reason, cause, fix, pod_object(view), said=[fault.message])


def _gated(view: PodView, fault: Fault) -> Finding:
    """As it was asked to: no fault, however long it takes."""
    cause = "another controller holds the pods back"
    fix = "Ask the controller that set the gate (Kueue, for example): kubectl get pod -o yaml shows it."
    return info(fault.reason, cause, fix, pod_object(view), said=[fault.message])


def _too_slow(facts: Facts, view: PodView, fault: Fault) -> Finding:
    cause = "the engine was not healthy in the time that it may take, and was ended"
    log = f"kubectl logs {view.name} -c {ENGINE} --previous -n {facts.meta['namespace']}"
    fix = f"See how far it came: {log}. If it was getting on, raise spec.startup.timeoutSeconds."
    return error(fault.reason, cause, fix, pod_object(view), said=[fault.message])


def _image(view: PodView, fault: Fault) -> Finding:
    container = _container_of(view, fault)
    image = str(container.get("image") or "")
    cause = image_cause(_CONTAINER.sub("", fault.message), image)
    text = f"the image {image} cannot be pulled"
    fix = cause.fix if cause else "Check spec.engine.image and the pull secrets in spec.podTemplate.spec."
    return error(fault.reason, f"{text}: {cause.cause}" if cause else text, fix, pod_object(view), said=[fault.message])


def _config(facts: Facts, view: PodView, fault: Fault) -> Finding:
    if found := _MISSING.search(fault.message):
        kind, name = found.groups()
        cause = f"the {kind} {name} that the pods read does not exist in namespace {facts.meta['namespace']}"
        create = f"generic {name}" if kind == "secret" else name
        fix = f"Create it: kubectl create {kind} {create} -n {facts.meta['namespace']} --from-literal=KEY=VALUE"
    elif "couldn't find key" in fault.message:
        cause, fix = "a Secret or ConfigMap lacks the key that the pods read", "Add the key, or correct its name."
    elif "runAsNonRoot" in fault.message:
        cause = "the image runs as root, which the pods may not"
        fix = "Set podTemplate.spec.securityContext.runAsUser, or use an image whose USER is a number above 0."
    else:
        cause, fix = "a container cannot be configured", "Change what the message names."
    return error(fault.reason, cause, fix, pod_object(view), said=[fault.message])


def _memory(view: PodView, fault: Fault) -> Finding:
    container = _container_of(view, fault)
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    words = f"its memory limit of {limit}" if limit else "the memory that it may have"
    cause = f"the container {container.get('name', ENGINE)} needs more than {words}, and was killed"
    fix = (
        "Raise spec.resources.limits.memory, or let vLLM take less: spec.engine.maxNumSeqs, spec.engine.maxModelLen; "
        "what is in /dev/shm and in memory-backed volumes counts too."
    )
    return error(fault.reason, cause, fix, pod_object(view), said=[fault.message])


def _crash(facts: Facts, view: PodView, fault: Fault) -> Finding:
    log = facts.logs.get(view.name, "")
    cause = known_cause(fault.message) or known_cause(log) or _named(fault.reason)
    said = [fault.message, *([last_lines(log)] if log else [])]
    times = restarts(view.pod)
    repeated = f", {times} times by now" if times > 1 else ""
    name = str(_container_of(view, fault).get("name", ENGINE))
    if cause is not None:
        return error(
            fault.reason, cause.cause, cause.fix + _policy_hint(facts, view, cause), pod_object(view), said=said
        )
    fix = (
        f"Its words are below; all of them: kubectl logs {view.name} -c {name} --previous -n {facts.meta['namespace']}"
    )
    return error(fault.reason, f"the container {name} ends again and again{repeated}", fix, pod_object(view), said=said)


def _named(reason: Reason) -> Cause | None:
    """The cause that the runtime saw in what led to the last words, where they do not say it themselves."""
    return next((cause for cause in KNOWN if cause.reason == reason), None)


def _policy_hint(facts: Facts, view: PodView, cause: Cause) -> str:
    """What may keep a pod from the hub."""
    names = egress_policies(facts.policies, view.pod) if cause is OFFLINE else []
    return f" The NetworkPolicy {', '.join(names)} restricts what the pods may reach." if names else ""


def _ended(view: PodView) -> Iterator[Finding]:
    status = view.pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if status.get("phase") == "Failed" and reason:
        yield warning(
            reason, f"a pod has ended for good ({reason})", "Another took its place; the node may be short of memory "
            "or disk.", pod_object(view), said=[message],
        )  # fmt: skip


def _restarted(view: PodView) -> Iterator[Finding]:
    """It serves now; why it did not for a while."""
    for state in (view.pod.get("status") or {}).get("containerStatuses") or ():
        ended = (state.get("lastState") or {}).get("terminated") or {}
        if state.get("restartCount") and ended and (ended.get("exitCode") or ended.get("reason") == "OOMKilled"):
            words = str(ended.get("message") or "")
            cause = known_cause(words)
            why = (
                "it went over its memory limit" if ended.get("reason") == "OOMKilled" else cause.cause if cause else ""
            )
            yield warning(
                "Restarted",
                f"the container {state.get('name')} has restarted, and serves again{': ' + why if why else ''}",
                "Raise spec.resources.limits.memory."
                if ended.get("reason") == "OOMKilled"
                else cause.fix
                if cause
                else "",
                pod_object(view),
                said=[
                    f"{state['restartCount']} times, the last with exit code {ended.get('exitCode')}",
                    last_lines(words),
                ],
            )


def _terminating(facts: Facts, view: PodView) -> Iterator[Finding]:
    when = parse(view.pod["metadata"].get("deletionTimestamp"))  # the end of its grace period
    if when is not None and (facts.now - when).total_seconds() > _TERMINATING_SECONDS:
        yield warning(
            "Terminating",
            "a pod should be gone and is not: its node may be lost",
            "Look at the node; if it will not come back: kubectl delete pod NAME --force",
            pod_object(view),
        )


def _container_of(view: PodView, fault: Fault) -> Mapping[str, Any]:
    """The container's spec that a fault names."""
    found = _CONTAINER.match(fault.message)
    name = found[1] if found else ENGINE
    spec = view.pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return next((c for c in containers if c.get("name") == name), {"name": name})
