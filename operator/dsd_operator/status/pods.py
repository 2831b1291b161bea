"""Views over raw pods: which count, and what is wrong with one.

Containers are found by name. Others put theirs in (service meshes, agents), first in the list as well, and as init
containers that never end; the one at fault is named. Rollouts and messages must not flap, so what alternates in a
crash loop (waiting, running, terminated) maps to one reason, and counters and back-off times stay out of messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.status.reasons import Reason

Pod = Mapping[str, Any]

_LAST_LINES: Final = 5
_LINE_LENGTH: Final = 300

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
    return _condition(pod, "Ready").get("status") == "True"


def fault_of(pod: Pod) -> Fault | None:
    """What is wrong with a pod that counts and is not ready; None while it is simply starting."""
    if is_ready(pod):
        return None
    return _scheduling_fault(pod) or next(_container_faults(pod), None)


def _condition(pod: Pod, kind: str) -> Mapping[str, Any]:
    conditions = pod.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == kind), {})


def _scheduling_fault(pod: Pod) -> Fault | None:
    gates = [str(gate.get("name")) for gate in pod.get("spec", {}).get("schedulingGates") or []]
    if gates:
        return Fault(name_of(pod), Reason.SCHEDULING_GATED, f"held back by scheduling gate {', '.join(gates)}")
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return Fault(name_of(pod), Reason.UNSCHEDULABLE, str(scheduled.get("message", "")))
    return None


def _container_faults(pod: Pod) -> Iterator[Fault]:
    """Init containers first, they block the rest; then the engine, then what others put in."""
    status = pod.get("status", {})
    main: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or []
    ordered = sorted(main, key=lambda container: container.get("name") != ENGINE)
    for container in [*(status.get("initContainerStatuses") or []), *ordered]:
        found = _container_fault(container)
        if found is not None:
            reason, message = found
            yield Fault(name_of(pod), reason, f"container {container.get('name')}: {message}")


def _container_fault(container: Mapping[str, Any]) -> tuple[Reason, str] | None:
    if container.get("ready"):
        return None
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    crash = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    kind = waiting.get("reason")
    if kind and kind not in _STARTING and kind != "CrashLoopBackOff":
        reason = _WAITING.get(kind, Reason.CONTAINER_START_ERROR)
        return reason, _sentence(kind, str(waiting.get("message", ""))) + _advice(str(waiting.get("message", "")))
    return _crash(crash) if (crash and crash.get("exitCode") != 0) or kind == "CrashLoopBackOff" else None


def _crash(crash: Mapping[str, Any]) -> tuple[Reason, str]:
    last = last_lines(str(crash.get("message", "")))
    if crash.get("reason") == "OOMKilled":
        return Reason.OOM_KILLED, _sentence("killed for exceeding its memory limit", last)
    return Reason.CRASH_LOOP_BACK_OFF, _sentence(f"exits with code {crash.get('exitCode', 'unknown')}", last)


def _sentence(what: str, details: str) -> str:
    return f"{what}: {details}" if details else what


def _advice(message: str) -> str:
    if "runAsNonRoot" in message:
        return "; set podTemplate.spec.securityContext.runAsUser, or use an image whose USER is a number above 0"
    return ""


def last_lines(text: str) -> str:
    """The end of a log, where a crash says what it is: the last lines, blank ones left out, joined by ` | `."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(line[:_LINE_LENGTH] for line in lines[-_LAST_LINES:])
