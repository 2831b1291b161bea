"""The whole status of a resource from one reconcile pass. Computed anew each time, never edited."""

from collections.abc import Sequence
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.render.labels import selector_string
from dsd_operator.render.names import names_for
from dsd_operator.render.service import url
from dsd_operator.render.synthetic import WARNING, is_synthetic
from dsd_operator.status.blockers import beside_blocker, pod_blocker, spec_blocker
from dsd_operator.status.cache import claim_notes
from dsd_operator.status.conditions import Condition, Status, merge_conditions
from dsd_operator.status.events import Event, transitions
from dsd_operator.status.notes import envelope_notes, monitoring_notes, resolved_notes, scaling_notes
from dsd_operator.status.observed import Observed, Outcome
from dsd_operator.status.reasons import ConditionType, Reason
from dsd_operator.status.rollout import Rollout, available, progressing, rollout_of
from dsd_operator.status.schedule import PodSchedule, pod_schedules, schedule_applied, schedule_status

__all__ = ["Event", "summarize", "transitions"]


def summarize(resource: DSDDeployment, observed: Observed, outcome: Outcome, now: str) -> dict[str, Any]:
    """The status to apply. `now` is RFC 3339; what `resource.status` says of earlier transitions is kept."""
    rollout = rollout_of(resource, observed, outcome, now)
    pods = pod_schedules(observed, outcome)
    conditions = _conditions(resource, rollout, pods, observed, outcome)
    generation = resource.metadata.generation
    return {
        "observedGeneration": generation,
        "conditions": merge_conditions(resource.status.get("conditions") or [], conditions, generation, now),
        "replicas": rollout.replicas,
        "readyReplicas": rollout.ready,
        "updatedReplicas": rollout.updated,
        "selector": selector_string(names_for(resource.metadata.name)),
        "url": url(resource),
        "ready": f"{rollout.ready}/{rollout.wanted}",
        "schedule": schedule_status(resource, pods, outcome),
    }


def _conditions(
    resource: DSDDeployment, rollout: Rollout, pods: Sequence[PodSchedule], observed: Observed, outcome: Outcome
) -> list[Condition]:
    applied = schedule_applied(resource, pods, outcome, rollout.wanted)
    moving = progressing(rollout, observed, outcome)
    ready = _ready(resource, rollout, moving, applied, observed, outcome)
    return [available(rollout, observed, outcome), moving, applied, ready]


def _ready(
    resource: DSDDeployment,
    rollout: Rollout,
    moving: Condition,
    applied: Condition,
    observed: Observed,
    outcome: Outcome,
) -> Condition:
    """True when all of the spec is in force: nothing refused, every pod up to date and ready, no schedule refused."""
    blocker = spec_blocker(outcome)
    if blocker is not None:
        return _condition("False", blocker.reason, blocker.message)
    if applied.status == "False":
        return _condition("False", applied.reason, applied.message)
    if not rollout.complete:
        waiting = pod_blocker(observed.newest(rollout.kind))
        reason = waiting.reason if waiting else moving.reason
        text = waiting.message if waiting else moving.message
        return _condition("False", reason, "; ".join([text, *claim_notes(resource, observed.claim)]))
    beside = beside_blocker(outcome)
    if beside is not None:
        return _condition("False", beside.reason, beside.message)
    return _in_force(resource, rollout, observed, outcome)


def _in_force(resource: DSDDeployment, rollout: Rollout, observed: Observed, outcome: Outcome) -> Condition:
    """Ready, with what is worth knowing of it."""
    if rollout.wanted == 0:
        return _condition("True", Reason.SCALED_TO_ZERO, "scaled to zero: nothing serves, as asked")
    text = f"{rollout.ready} of {rollout.wanted} pods serve"
    notes = [*envelope_notes(resource), *claim_notes(resource, observed.claim), *scaling_notes(resource, observed)]
    notes += [*monitoring_notes(resource, observed), *resolved_notes(resource, outcome.pushes)]
    message = "; ".join([text, *notes])
    if is_synthetic(resource.spec):
        return _condition("True", Reason.SYNTHETIC_ACCEPTANCE, f"{WARNING}; {message}")
    return _condition("True", Reason.READY, message)


def _condition(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(ConditionType.READY, status, reason, message)
