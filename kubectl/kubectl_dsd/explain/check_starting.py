"""How far a pod is that is not ready and that nothing is known to be wrong with. Part of `check_pods`; pure.

The stages are those of the operator's status (`status.pods.phase_of`); Events of the pod add what its node says.
"""

from collections.abc import Iterator
from typing import Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.status.pods import has_been_ready, is_up, phase_of
from dsd_operator.status.reasons import Reason
from kubectl_dsd.ages import age
from kubectl_dsd.cluster import Objects
from kubectl_dsd.explain.facts import Facts, pod_object
from kubectl_dsd.explain.finding import Finding, error, info
from kubectl_dsd.pod_view import PodView

_STUCK_EVENTS: Final = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady")
_DEFAULT_SECONDS: Final = 3600


def check(facts: Facts, view: PodView) -> Iterator[Finding]:
    """One finding: the stage, and what holds the pod up there or how to see how far it is."""
    stage = phase_of(view.pod)
    match stage.reason:
        case Reason.PENDING:
            fix = "Wait. If it stays so: does the scheduler run, and did it see the pod (kubectl describe pod)?"
            yield info(Reason.PENDING, "the pods wait for a node", fix, pod_object(view))
        case Reason.CONTAINER_CREATING:
            yield _creating(facts, view, stage.message)
        case _:
            yield _running(facts, view, stage.message)


def _creating(facts: Facts, view: PodView, stage: str) -> Finding:
    events = [e for e in facts.events if (e.get("involvedObject") or {}).get("name") == view.name]
    stuck = [str(e.get("message") or "") for e in events if e.get("reason") in _STUCK_EVENTS]
    if stuck:
        return error(
            Reason.CONTAINER_CREATING,
            "the pods wait for a volume or for the network",
            "Check spec.cache and the volumes in spec.podTemplate: claim, Secret and ConfigMap must exist and be free.",
            pod_object(view),
            said=stuck[-1:],
        )
    return info(Reason.CONTAINER_CREATING, stage, "Wait.", pod_object(view), said=_pulling(events))


def _pulling(events: Objects) -> list[str]:
    return [str(e.get("message")) for e in events if e.get("reason") == "Pulling"][-1:]


def _running(facts: Facts, view: PodView, stage: str) -> Finding:
    """The engine's container runs: it loads, or it has loaded and does not pass its readiness probe."""
    log = f"kubectl logs {view.name} -c {ENGINE} -n {facts.meta['namespace']}"
    if has_been_ready(view.pod):
        return error(
            Reason.DEGRADED,
            f"a pod that served is not ready any more: {stage}",
            f"See what its probe gets (kubectl describe pod {view.name} -n {facts.meta['namespace']}) and what it "
            f"says: {log}",
            pod_object(view),
        )
    if is_up(view.pod):
        return info(Reason.STARTING, stage, f"{log} says whether it waits for its schedule.", pod_object(view))
    timeout = (facts.spec.get("startup") or {}).get("timeoutSeconds") or _DEFAULT_SECONDS
    since = f" for {age(started, facts.now)}" if (started := _started_at(view)) else ""
    text = f"the engine has been starting{since} of at most {timeout} s (loading, graphs)"
    return info(Reason.STARTING, text, f"{log} shows how far it is.", pod_object(view))


def _started_at(view: PodView) -> str:
    for state in (view.pod.get("status") or {}).get("containerStatuses") or ():
        if state.get("name") == ENGINE:
            return str(((state.get("state") or {}).get("running") or {}).get("startedAt") or "")
    return ""
