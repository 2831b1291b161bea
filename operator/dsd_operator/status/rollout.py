"""Available and Progressing: what serves now, and whether the pods are still on their way to what the spec says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.workload import kind_of
from dsd_operator.status.blockers import Blocker, phase, pod_blocker, spec_blocker
from dsd_operator.status.conditions import Condition, Status
from dsd_operator.status.deadline import overdue
from dsd_operator.status.observed import Observed, Outcome
from dsd_operator.status.pods import can_serve, has_run, is_ready
from dsd_operator.status.reasons import CANNOT_START, ConditionType, Reason

_STUCK: Final = CANNOT_START | {Reason.POD_CREATION_FAILED}
"""What does not go by waiting: nothing progresses, whatever the deadline says."""

_WAITS: Final[Mapping[Reason, Reason]] = {
    Reason.CACHE_NOT_AS_ASKED: Reason.PENDING,
    Reason.UNSCHEDULABLE: Reason.PENDING,
    Reason.IMAGE_PULL_BACK_OFF: Reason.CONTAINER_CREATING,
    Reason.CONTAINER_CONFIG_ERROR: Reason.CONTAINER_CREATING,
    Reason.CONTAINER_START_ERROR: Reason.CONTAINER_CREATING,
}
"""How far a pod is that has such a fault; with any other its engine runs, or did."""


@dataclass(frozen=True)
class Rollout:
    """Counts of replicas. `current`: the workload's controller has seen the latest spec, so they are about it."""

    kind: str
    exists: bool
    current: bool
    wanted: int
    replicas: int
    updated: int
    ready: int
    deadline_exceeded: bool
    settled: bool

    @property
    def rolling(self) -> bool:
        """Replicas have yet to be made or replaced."""
        return self.updated < self.wanted or self.replicas != self.updated or not self.current

    @property
    def complete(self) -> bool:
        """Every replica is there, of the newest template, and ready; no other is left."""
        return self.exists and self.current and self.replicas == self.updated == self.ready == self.wanted


def rollout_of(resource: DSDDeployment, observed: Observed, outcome: Outcome, now: str) -> Rollout:
    """Read the workload that the resource asks for. Another one that is still there counts as long as it serves.
    `now` is RFC 3339."""
    kind = kind_of(resource)
    foreign = any(failure.foreign and failure.kind == kind for failure in outcome.failures)
    chosen = None if foreign else observed.workload(kind)
    others = [workload for workload in observed.workloads if workload.kind != kind]
    counted = [*others, chosen] if chosen else others
    return Rollout(
        kind=kind,
        exists=chosen is not None,
        current=chosen is not None and chosen.current,
        wanted=chosen.asked if chosen and observed.scaled_by else resource.spec.replicas,
        replicas=sum(workload.replicas for workload in counted),
        updated=chosen.updated if chosen else 0,
        ready=sum(workload.ready for workload in counted),
        deadline_exceeded=chosen is not None and (chosen.deadline_exceeded or overdue(resource, chosen, now)),
        settled=chosen is not None and chosen.settled,
    )


def available(rollout: Rollout, observed: Observed, outcome: Outcome) -> Condition:
    """True while at least one pod serves, whatever else goes on."""
    if rollout.ready:
        return _available("True", Reason.AVAILABLE, _serving(rollout))
    if rollout.wanted == 0:
        return _available("False", Reason.SCALED_TO_ZERO, "scaled to zero: nothing serves, as asked")
    blocker = spec_blocker(outcome) or pod_blocker(observed)
    if blocker is None:
        return _available("False", Reason.NO_PODS_READY, f"none of {rollout.wanted} pods is ready yet")
    return _available("False", blocker.reason, blocker.message)


def _serving(rollout: Rollout) -> str:
    """A roll-out with surge, or one that scales down, has more of them than are wanted."""
    if rollout.wanted == 0:
        return f"scaled to zero: {rollout.ready} pods still serve"
    more = rollout.ready - rollout.wanted
    text = f"{min(rollout.ready, rollout.wanted)} of {rollout.wanted} pods serve"
    return f"{text}, and {more} more" if more > 0 else text


def progressing(rollout: Rollout, observed: Observed, outcome: Outcome) -> Condition:
    """True while pods are being made, replaced or started; False when done, and when it cannot go on. A fault of a pod
    that is about to be replaced stops nothing: it may be what the change mends."""
    blocker = spec_blocker(outcome)
    if blocker is not None:
        return _progressing("False", blocker.reason, blocker.message)
    if not rollout.exists:
        return _progressing("True", Reason.CREATING, f"the {rollout.kind} is being created")
    if rollout.complete:
        return _progressing("False", Reason.ROLLED_OUT, f"{rollout.ready} of {rollout.wanted} pods are up to date")
    return _under_way(rollout, observed)


def _under_way(rollout: Rollout, observed: Observed) -> Condition:
    blocker, stage = pod_blocker(observed.newest(rollout.kind)), phase(observed)
    told = blocker or stage
    text = f"{rollout.updated} of {rollout.wanted} pods are up to date, {rollout.ready} ready"
    message = f"{text}; {told.message}" if told is not None else text
    if blocker is not None and blocker.reason is Reason.SCHEDULING_GATED:
        return _progressing("True", Reason.SCHEDULING_GATED, message)  # also after the deadline: it is no failure
    if blocker is not None and blocker.reason in _STUCK:
        return _progressing("False", blocker.reason, message)  # so too: a better reason than the deadline
    if rollout.deadline_exceeded:
        return _progressing("False", Reason.PROGRESS_DEADLINE_EXCEEDED, message)
    if rollout.rolling:
        return _progressing("True", Reason.ROLLING_OUT, message)
    if rollout.settled and _fell_back(observed):
        return _progressing("False", Reason.DEGRADED, message)
    return _progressing("True", _stage(blocker, stage), message)


def _stage(blocker: Blocker | None, stage: Blocker | None) -> Reason:
    """How far the pods are; what is wrong with one may still go by itself."""
    if blocker is not None:
        return _WAITS.get(blocker.reason, Reason.STARTING)
    return stage.reason if stage is not None else Reason.STARTING


def _fell_back(observed: Observed) -> bool:
    """Whether a pod that is not ready is none that simply starts for the first time."""
    late = (pod for pod in (*observed.pods, *observed.workers) if can_serve(pod) and not is_ready(pod))
    return any(has_run(pod) for pod in late)


def _available(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.AVAILABLE, status, reason, message)


def _progressing(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.PROGRESSING, status, reason, message)
