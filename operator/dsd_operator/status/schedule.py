"""`status.schedule` and the condition ScheduleApplied: which pods use the schedule that the resource asks for.

Every pod that can serve is in one of three groups: applied, unknown (not asked yet, or out of reach; its mounted file
brings the schedule) and refused. Pods that are being deleted or are dead are in none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.status import MAX_OUT_OF_SYNC
from dsd_operator.status.blockers import listed, spec_blocker
from dsd_operator.status.conditions import Condition, Status
from dsd_operator.status.notes import schedule_notes, smoothing_notes
from dsd_operator.status.observed import Observed, Outcome, PushResult, PushState
from dsd_operator.status.pods import Pod, can_serve, is_ready, name_of
from dsd_operator.status.reasons import ConditionType, Reason

_WORST_FIRST: Final = (
    PushState.REFUSED,
    PushState.PLUGIN_OFF,
    PushState.UNAUTHORIZED,
    PushState.UNREACHABLE,
    PushState.NOT_READY,
)
_UNKNOWN: Final = frozenset({PushState.UNREACHABLE, PushState.NOT_READY})

_CONSEQUENCE: Final[Mapping[PushState, str]] = {
    PushState.PLUGIN_OFF: "a change needs a restart of the pod",
    PushState.UNAUTHORIZED: "its mounted file brings the schedule",
    PushState.UNREACHABLE: "its mounted file brings the schedule",
    PushState.NOT_READY: "it starts with the schedule",
}
"""What follows for the user."""

NO_TOKEN: Final = "no token for the pod"
"""What a pod's message begins with where it is the API server that refuses: it gives the operator none."""


@dataclass(frozen=True)
class PodSchedule:
    """One pod that can serve, and how it stands to the wanted schedule."""

    pod: str
    state: PushState
    message: str


def pod_schedules(observed: Observed, outcome: Outcome) -> tuple[PodSchedule, ...]:
    """Every pod that can serve, worst first; a pod nobody talked to is not ready."""
    pushes = {push.pod: push for push in outcome.pushes}
    counted = sorted((pod for pod in observed.pods if can_serve(pod)), key=name_of)
    found = [_standing(pod, pushes.get(name_of(pod)), outcome.wanted_hash) for pod in counted]
    order = {state: place for place, state in enumerate((*_WORST_FIRST, PushState.APPLIED))}
    return tuple(sorted(found, key=lambda pod: order[pod.state]))


def _standing(pod: Pod, push: PushResult | None, wanted_hash: str | None) -> PodSchedule:
    name = name_of(pod)
    if push is None or (push.state is PushState.UNREACHABLE and not is_ready(pod)):
        return PodSchedule(name, PushState.NOT_READY, "")  # the network is not to blame for an engine that hangs
    in_use = push.status.schedule.hash if push.status and push.status.schedule else None
    if push.state is PushState.PLUGIN_OFF and wanted_hash is not None and in_use == wanted_hash:
        # It started with the schedule as vLLM's own table and nothing has changed since.
        return PodSchedule(name, PushState.APPLIED, push.message)
    return PodSchedule(name, push.state, push.message)


def schedule_status(resource: DSDDeployment, pods: Sequence[PodSchedule], outcome: Outcome) -> dict[str, Any]:
    """The block `status.schedule`; podsTotal is the sum of applied, unknown and refused pods."""
    counts = Counter(pod.state for pod in pods)
    late = [{"pod": pod.pod, "reason": pod.state.value} for pod in pods if pod.state is not PushState.APPLIED]
    return {
        "observedGeneration": resource.metadata.generation,
        **({} if outcome.wanted_hash is None else {"hash": outcome.wanted_hash}),
        "applied": f"{counts[PushState.APPLIED]}/{len(pods)}",
        "podsApplied": counts[PushState.APPLIED],
        "podsUnknown": sum(counts[state] for state in _UNKNOWN),
        "podsTotal": len(pods),
        "outOfSync": late[:MAX_OUT_OF_SYNC],
    }


def schedule_applied(resource: DSDDeployment, pods: Sequence[PodSchedule], outcome: Outcome, wanted: int) -> Condition:
    """False only for a pod that is known not to use the schedule; a pod out of reach makes it Unknown.

    `wanted`: how many pods there are to be, which an autoscaler may have decided.
    """
    blocker = spec_blocker(outcome)
    if outcome.wanted_hash is None:
        message = blocker.message if blocker else "the schedule has not been rendered yet"
        return _condition("False", blocker.reason if blocker else Reason.CREATING, message)
    if not pods:
        return _without_pods(wanted)
    worst = pods[0].state
    if worst is PushState.APPLIED:
        return _condition("True", Reason.APPLIED, _applied_message(resource, pods, outcome))
    details = listed([_detail(pod) for pod in pods if pod.state is worst])
    done = sum(pod.state is PushState.APPLIED for pod in pods)
    notes = smoothing_notes(resource, outcome.pushes)
    message = "; ".join([f"{done} of {len(pods)} pods use the schedule", details, *notes])
    return _condition("Unknown" if worst in _UNKNOWN else "False", Reason(worst.value), message)


def _without_pods(wanted: int) -> Condition:
    if wanted == 0:
        return _condition("True", Reason.SCALED_TO_ZERO, "there are no pods; new ones start with the schedule")
    return _condition("Unknown", Reason.POD_NOT_READY, "there are no pods yet; they start with the schedule")


def _applied_message(resource: DSDDeployment, pods: Sequence[PodSchedule], outcome: Outcome) -> str:
    text = f"{len(pods)} of {len(pods)} pods use schedule {outcome.wanted_hash}"
    return "; ".join([text, *schedule_notes(resource, outcome.pushes)])


def _detail(pod: PodSchedule) -> str:
    parts = [pod.message or pod.state.value, _CONSEQUENCE.get(pod.state, "")]
    return f"pod {pod.pod}: {'; '.join(part for part in parts if part)}"


def _condition(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.SCHEDULE_APPLIED, status, reason, message)
