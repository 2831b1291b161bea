"""Available and Progressing: what serves now, and whether the pods are still on their way to what the spec says."""

from dataclasses import dataclass

from dsd_operator.api import DSDDeployment
from dsd_operator.render.workload import kind_of
from dsd_operator.status.blockers import Blocker, pod_blocker, spec_blocker
from dsd_operator.status.conditions import Condition, Status
from dsd_operator.status.observed import Observed, Outcome
from dsd_operator.status.reasons import ConditionType, Reason


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

    @property
    def complete(self) -> bool:
        """Every replica is there, of the newest template, and ready; no other is left."""
        return self.exists and self.current and self.replicas == self.updated == self.ready == self.wanted


def rollout_of(resource: DSDDeployment, observed: Observed, outcome: Outcome) -> Rollout:
    """Read the workload that the resource asks for. Another one that is still there counts as long as it serves."""
    kind = kind_of(resource)
    foreign = any(failure.foreign and failure.kind == kind for failure in outcome.failures)
    chosen = None if foreign else observed.workload(kind)
    others = [workload for workload in observed.workloads if workload.kind != kind]
    counted = [*others, chosen] if chosen else others
    return Rollout(
        kind=kind,
        exists=chosen is not None,
        current=chosen is not None and chosen.current,
        wanted=resource.spec.replicas,
        replicas=sum(workload.replicas for workload in counted),
        updated=chosen.updated if chosen else 0,
        ready=sum(workload.ready for workload in counted),
        deadline_exceeded=chosen is not None and chosen.deadline_exceeded,
    )


def available(rollout: Rollout, observed: Observed, outcome: Outcome) -> Condition:
    """True while at least one pod serves, whatever else goes on."""
    if rollout.ready:
        return _available("True", Reason.AVAILABLE, f"{rollout.ready} of {rollout.wanted} pods serve")
    if rollout.wanted == 0:
        return _available("False", Reason.SCALED_TO_ZERO, "scaled to zero: nothing serves, as asked")
    blocker = spec_blocker(outcome) or pod_blocker(observed)
    if blocker is None:
        return _available("False", Reason.NO_PODS_READY, f"none of {rollout.wanted} pods is ready yet")
    return _available("False", blocker.reason, blocker.message)


def progressing(rollout: Rollout, observed: Observed, outcome: Outcome) -> Condition:
    """True while pods are being made, replaced or started; False when done, and when it cannot go on."""
    blocker = spec_blocker(outcome)
    if blocker is not None:
        return _progressing("False", blocker.reason, blocker.message)
    if not rollout.exists:
        return _progressing("True", Reason.CREATING, f"the {rollout.kind} is being created")
    if rollout.complete:
        return _progressing("False", Reason.ROLLED_OUT, f"{rollout.ready} of {rollout.wanted} pods are up to date")
    return _under_way(rollout, pod_blocker(observed))


def _under_way(rollout: Rollout, blocker: Blocker | None) -> Condition:
    text = f"{rollout.updated} of {rollout.wanted} pods are up to date, {rollout.ready} ready"
    message = f"{text}; {blocker.message}" if blocker else text
    # Both keep their state after the deadline: a held pod is no failure, a refused one has a better reason.
    if blocker and blocker.reason is Reason.SCHEDULING_GATED:
        return _progressing("True", Reason.SCHEDULING_GATED, message)
    if blocker and blocker.reason is Reason.POD_CREATION_FAILED:
        return _progressing("False", Reason.POD_CREATION_FAILED, message)
    if rollout.deadline_exceeded:
        return _progressing("False", Reason.PROGRESS_DEADLINE_EXCEEDED, message)
    rolling = rollout.updated < rollout.wanted or rollout.replicas != rollout.updated or not rollout.current
    return _progressing("True", Reason.ROLLING_OUT if rolling else Reason.STARTING, message)


def _available(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.AVAILABLE, status, reason, message)


def _progressing(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.PROGRESSING, status, reason, message)
