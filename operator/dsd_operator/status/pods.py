"""Views over raw pods: which count, and what is wrong with one.

Containers are found by name. Others put theirs in (service meshes, agents), first in the list as well, and as init
containers that never end; the one at fault is named. Rollouts and messages must not flap, so what alternates in a
crash loop (waiting, running, terminated) maps to one reason, and counters and back-off times stay out of messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.status.crashes import crash
from dsd_operator.status.readiness import condition, lost_since
from dsd_operator.status.reasons import Reason

Pod = Mapping[str, Any]

_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Waiting reasons of a container that nothing is wrong with."""

_WAITING: Final[Mapping[str, Reason]] = {
    "ImagePullBackOff": Reason.IMAGE_PULL_BACK_OFF,
    "ErrImagePull": Reason.IMAGE_PULL_BACK_OFF,
    "ErrImageNeverPull": Reason.IMAGE_PULL_BACK_OFF,
    "InvalidImageName": Reason.IMAGE_PULL_BACK_OFF,
    "ImageInspectError": Reason.IMAGE_PULL_BACK_OFF,
    "RegistryUnavailable": Reason.IMAGE_PULL_BACK_OFF,
    "CreateContainerConfigError": Reason.CONTAINER_CONFIG_ERROR,
}
"""The kubelet's waiting reasons; a reason that is neither here nor STARTING is a ContainerStartError."""


@dataclass(frozen=True)
class Fault:
    """What keeps one pod from serving. `message` already names the container where there is one."""

    pod: str
    reason: Reason
    message: str


def name_of(pod: Pod) -> str:
    """The pod's name."""
    return str(pod.get("metadata", {}).get("name", ""))


def can_serve(pod: Pod) -> bool:
    """Whether the pod counts: not Failed or Succeeded (evicted pods stay for days) and not being deleted."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Failed", "Succeeded") and not pod.get("metadata", {}).get("deletionTimestamp")


def is_ready(pod: Pod) -> bool:
    """The pod's own Ready condition."""
    return condition(pod, "Ready").get("status") == "True"


def is_up(pod: Pod) -> bool:
    """Whether the engine answers HTTP, as far as the kubelet knows: ready, or its startup probe has passed.

    An engine that is not ready for its schedule's sake gets ready by being given one.
    """
    return is_ready(pod) or bool(_engine(pod).get("started"))


def has_run(pod: Pod) -> bool:
    """Whether the engine got as far as answering, or ended: a pod that is not ready is no new one then."""
    engine = _engine(pod)
    return bool(engine.get("started") or engine.get("restartCount") or (engine.get("state") or {}).get("terminated"))


def has_been_ready(pod: Pod) -> bool:
    """Whether the pod is ready, or was since its engine's container started."""
    state = _engine(pod).get("state") or {}
    return is_ready(pod) or lost_since(pod, state.get("running") or state.get("terminated") or {})


def engine_restarts(pod: Pod) -> int:
    """Restarts of the engine's container; those of containers that others put in are none of them."""
    return int(_engine(pod).get("restartCount") or 0)


def fault_of(pod: Pod) -> Fault | None:
    """What is wrong with a pod that counts and is not ready; None while it is simply starting."""
    if is_ready(pod):
        return None
    return _scheduling_fault(pod) or next(_container_faults(pod), None)


def phase_of(pod: Pod) -> Fault:
    """How far a pod is that is not ready and that nothing is wrong with."""
    if not pod.get("spec", {}).get("nodeName"):
        return Fault(name_of(pod), Reason.PENDING, "waits for a node")
    unfinished = next(_unfinished_init_containers(pod), None)
    if unfinished is not None:
        return Fault(name_of(pod), Reason.CONTAINER_CREATING, f"init container {unfinished} has yet to end or to start")
    engine = _engine(pod)
    if "running" not in (engine.get("state") or {}):
        text = "its node pulls the image, mounts the volumes, or makes the container"
        return Fault(name_of(pod), Reason.CONTAINER_CREATING, text)
    if not engine.get("started"):
        return Fault(name_of(pod), Reason.STARTING, "container engine loads the model or captures graphs")
    late = [c for c in _main_containers(pod) if not c.get("ready")]
    name = late[0].get("name") if late else ENGINE
    return Fault(name_of(pod), Reason.STARTING, f"container {name} runs and is not ready")


def _unfinished_init_containers(pod: Pod) -> Iterator[str]:
    """Those that the others wait for: a plain one that has not ended, a sidecar that has not started."""
    for container in pod.get("status", {}).get("initContainerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if not (ended or (container.get("started") and container.get("name") in _sidecars(pod))):
            yield str(container.get("name"))


def _sidecars(pod: Pod) -> set[str]:
    found = pod.get("spec", {}).get("initContainers") or ()
    return {str(c.get("name")) for c in found if c.get("restartPolicy") == "Always"}


def _engine(pod: Pod) -> Mapping[str, Any]:
    return next((c for c in _main_containers(pod) if c.get("name") == ENGINE), {})


def _main_containers(pod: Pod) -> Sequence[Mapping[str, Any]]:
    """Their states, the engine's first."""
    found: Sequence[Mapping[str, Any]] = pod.get("status", {}).get("containerStatuses") or ()
    return sorted(found, key=lambda container: container.get("name") != ENGINE)


def _scheduling_fault(pod: Pod) -> Fault | None:
    gates = [str(gate.get("name")) for gate in pod.get("spec", {}).get("schedulingGates") or []]
    if gates:
        return Fault(name_of(pod), Reason.SCHEDULING_GATED, f"held back by scheduling gate {', '.join(gates)}")
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return Fault(name_of(pod), Reason.UNSCHEDULABLE, str(scheduled.get("message", "")))
    return None


def _container_faults(pod: Pod) -> Iterator[Fault]:
    """Init containers first, they block the rest; then the engine, then what others put in."""
    for container in [*(pod.get("status", {}).get("initContainerStatuses") or ()), *_main_containers(pod)]:
        found = _container_fault(pod, container)
        if found is not None:
            reason, message = found
            yield Fault(name_of(pod), reason, f"container {container.get('name')}: {message}")


def _container_fault(pod: Pod, container: Mapping[str, Any]) -> tuple[Reason, str] | None:
    state = container.get("state") or {}
    if container.get("ready") or lost_since(pod, state.get("running") or {}):
        return None  # it got ready in this run: what ended the one before is over, whatever is wrong now
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    kind = waiting.get("reason")
    if kind and kind not in _STARTING and kind != "CrashLoopBackOff":
        reason = _WAITING.get(kind, Reason.CONTAINER_START_ERROR)
        message = str(waiting.get("message", ""))
        return reason, (f"{kind}: {message}" if message else kind) + _advice(message)
    return crash(pod, container, ended, looping=kind == "CrashLoopBackOff")


def _advice(message: str) -> str:
    if "runAsNonRoot" in message:
        return "; set podTemplate.spec.securityContext.runAsUser, or use an image whose USER is a number above 0"
    return ""
