"""Available and Progressing: what serves now, and whether the pods are still on their way to what the spec says."""

from dataclasses import dataclass

from dsd_operator.api import DSDDeployment
from dsd_operator.status.blockers import Blocker, pod_blocker, spec_blocker
from dsd_operator.status.conditions import Condition, Status
from dsd_operator.status.observed import Observed, Outcome
from dsd_operator.status.reasons import ConditionType, Reason


@dataclass(frozen=True)
class Rollout:
    """Counts of the Deployment. `current`: its controller has seen the latest spec, so the counts are about it."""

    exists: bool
    current: bool
    wanted: int
    replicas: int
    updated: int
    ready: int
    deadline_exceeded: bool

    @property
    def complete(self) -> bool:
        """Every pod is there, of the newest template, and ready; no other is left."""
        return self.exists and self.current and self.replicas == self.updated == self.ready == self.wanted


def rollout_of(resource: DSDDeployment, observed: Observed, outcome: Outcome) -> Rollout:
    """Read the Deployment; one that is not ours counts as missing."""
    foreign = any(failure.foreign and failure.kind == "Deployment" for failure in outcome.failures)
    deployment = (None if foreign else observed.deployment) or {}
    status, meta = deployment.get("status", {}), deployment.get("metadata", {})
    conditions = status.get("conditions") or []
    return Rollout(
        exists=bool(deployment),
        current=status.get("observedGeneration", 0) >= meta.get("generation", 0),
        wanted=resource.spec.replicas,
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        deadline_exceeded=any(c.get("reason") == "ProgressDeadlineExceeded" for c in conditions),
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
        return _progressing("True", Reason.CREATING, "the Deployment is being created")
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
