"""One pod as `status` and `schedule diff` show it, and whether it uses the wanted schedule. Pure.

What the engine itself says counts; where it cannot be asked, the operator's word in the resource's status does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.status.pods import can_serve, fault_of, is_ready, name_of
from dsd_operator.status.reasons import Reason
from kubectl_dsd.reach import Asked, ready_word
from kubectl_dsd.wanted import Schedule

_OPERATOR_SAYS: Final[Mapping[str, str]] = {
    Reason.POD_NOT_READY: "it still starts; it starts with the schedule",
    Reason.POD_UNREACHABLE: "the operator cannot reach it; the mounted file brings the schedule within about a minute",
    Reason.TOKEN_REFUSED: "the operator has no token that it takes; the mounted file brings the schedule",
    Reason.REFUSED_BY_ENGINE: "the engine refuses the schedule",
    Reason.RUNTIME_PLUGIN_OFF: "its vLLM takes a schedule at start only: a change needs a restart of the pod",
}


@dataclass(frozen=True)
class PodView:
    """One pod. `in_sync`: None where nobody knows; `why` says why it is not True."""

    pod: Mapping[str, Any]
    asked: Asked
    in_sync: bool | None
    why: str = ""

    @property
    def name(self) -> str:
        """The pod's."""
        return name_of(self.pod)

    @property
    def schedule(self) -> Mapping[str, Any] | None:
        """What the engine says that it uses."""
        return (self.asked.status or {}).get("schedule")

    def tokens(self) -> list[int]:
        """The K of each engine core's latest step; cores that have not run one are left out."""
        cores = (self.asked.status or {}).get("engines") or ()
        return [int(core["numSpeculativeTokens"]) for core in cores if core.get("steps")]

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        state, schedule = self.pod.get("status") or {}, self.schedule or {}
        return {
            "name": self.name,
            "node": (self.pod.get("spec") or {}).get("nodeName"),
            "phase": phase(self.pod),
            "ready": is_ready(self.pod),
            "containersReady": ready_word(self.pod),
            "restarts": restarts(self.pod),
            "startTime": state.get("startTime"),
            "schedule": {key: schedule.get(key) for key in ("hash", "source", "revision")} if schedule else None,
            "numSpeculativeTokens": self.tokens(),
            "inSync": self.in_sync,
            "why": self.why or None,
        }


def pod_views(deployment: Mapping[str, Any], wanted: Schedule, asked: Sequence[Asked]) -> list[PodView]:
    """Every pod, in order."""
    status = (deployment.get("status") or {}).get("schedule") or {}
    current = status.get("observedGeneration") == deployment["metadata"].get("generation")
    late = {entry.get("pod"): str(entry.get("reason")) for entry in status.get("outOfSync") or ()} if current else {}
    return [_view(found, wanted, late, current and bool(status.get("podsApplied"))) for found in asked]


def _view(found: Asked, wanted: Schedule, late: Mapping[Any, str], known: bool) -> PodView:
    if not can_serve(found.pod):
        return PodView(found.pod, found, None, found.problem)
    reason = late.get(found.name, "")
    if found.status is not None:
        return _by_engine(found, found.status, wanted, reason)
    if not is_ready(found.pod):
        fault = fault_of(found.pod)
        return PodView(found.pod, found, None, fault.message if fault else _OPERATOR_SAYS[Reason.POD_NOT_READY])
    if reason:
        return PodView(found.pod, found, None, f"{_OPERATOR_SAYS.get(reason, reason)} ({reason})")
    if known:
        return PodView(found.pod, found, True, f"as the operator says; {found.problem}")
    return PodView(found.pod, found, None, found.problem)


def _by_engine(found: Asked, status: Mapping[str, Any], wanted: Schedule, reason: str) -> PodView:
    hashes = {str((core.get("schedule") or {}).get("hash")) for core in status.get("engines") or ()}
    hashes |= {str(status["schedule"].get("hash"))} if status.get("schedule") else set()
    if hashes == {wanted.hash}:
        return PodView(found.pod, found, True)
    if status.get("mode") == "off":
        error = (status.get("lastError") or {}).get("message") or "it does not say why"
        return PodView(found.pod, found, None, f"its schedule cannot be seen or changed without a restart: {error}")
    return PodView(found.pod, found, False, _late(status, hashes, reason))


def _late(status: Mapping[str, Any], hashes: set[str], reason: str) -> str:
    error = status.get("lastError") or {}
    told = _OPERATOR_SAYS.get(reason, "the operator has not brought the schedule yet")
    suffix = f" ({reason})" if reason else ""
    detail = f": {error['message']}" if error.get("message") else ""
    return f"it uses schedule {', '.join(sorted(hashes))}; {told}{suffix}{detail}"


def phase(pod: Mapping[str, Any]) -> str:
    """One word for the pod's state, much as kubectl has it."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in states:
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            reason = (state.get(kind) or {}).get("reason")
            if reason and reason not in ("PodInitializing", "Completed"):
                return str(reason)
    return str(status.get("reason") or status.get("phase") or "Unknown")


def restarts(pod: Mapping[str, Any]) -> int:
    """Of all containers together."""
    return sum(int(c.get("restartCount") or 0) for c in (pod.get("status") or {}).get("containerStatuses") or ())
