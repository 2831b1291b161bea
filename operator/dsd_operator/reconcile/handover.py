"""Moving engines from one kind of workload to the other, when `spec.engine.nodes` leaves 1 or comes back to it.

As a roll-out does it, and by the same two numbers: the new workload takes what the old one has left free
(`RenderContext.replicas`), the old one shrinks by what is ready in the new one, and is deleted when it has no pods.
Everything is read off what is there, so an operator that stops in between goes on where it was.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError, Conflict, Gone
from dsd_operator.reconcile.apply import Report, failed
from dsd_operator.render.workload import kind_of
from dsd_operator.status.observed import Observed
from dsd_operator.status.workload import Workload

LOOK_AGAIN_SECONDS: Final = 5.0
"""No watch shows a LeaderWorkerSet or its StatefulSets (a cluster may not have the kind), only their pods."""

_log = logging.getLogger(__name__)


def held(resource: DSDDeployment, observed: Observed) -> int:
    """Replicas of the workload that the resource does not ask for."""
    return sum(old.replicas for old in _others(resource, observed))


async def release(client: Client, resource: DSDDeployment, observed: Observed) -> Report:
    """Let go of as much of the other workload as the new one can do without. Raises nothing."""
    new = observed.workload(kind_of(resource))
    report = Report()
    for old in _others(resource, observed):
        if new is None or not new.current:  # refused, or nobody works on it: the old one goes on
            report += Report(again=LOOK_AGAIN_SECONDS)
            continue
        report += await _shrink(client, old, left_over(resource, observed, new))
    if new is not None and new.kind != "Deployment" and not _complete(_wanted(resource, observed, new), new):
        report += Report(again=LOOK_AGAIN_SECONDS)
    return report


def left_over(resource: DSDDeployment, observed: Observed, new: Workload) -> int:
    """How many replicas the old workload keeps: with those that are ready in the new one, no fewer than a roll-out."""
    return max(0, _wanted(resource, observed, new) - resource.spec.rollout.max_unavailable - new.ready)


def _wanted(resource: DSDDeployment, observed: Observed, new: Workload) -> int:
    """How many replicas there are to be: where an autoscaler scales the new workload itself, as many as that says."""
    return new.asked if observed.scaled_by else resource.spec.replicas


async def _shrink(client: Client, old: Workload, keep: int) -> Report:
    meta, asked = old.live["metadata"], int(old.live["spec"].get("replicas", 1))
    if meta.get("deletionTimestamp"):
        return Report()
    try:
        if asked > keep:
            await client.scale(old.live, keep)
            _log.info("Scaled %s %s to %d: engines move to the other workload", old.kind, meta["name"], keep)
        elif asked == 0 and old.replicas == 0:
            await client.delete(old.live)
            _log.info("Deleted %s %s: its engines have moved", old.kind, meta["name"])
    except (Conflict, Gone):
        return Report(retry=True)  # it has changed since this pass read it: no fault, and the next one decides anew
    except ApiError as error:
        return failed(_identity(old), f"cannot be taken away: {error.message}", error=error)
    return Report(again=LOOK_AGAIN_SECONDS)


def _others(resource: DSDDeployment, observed: Observed) -> list[Workload]:
    return [workload for workload in observed.workloads if workload.kind != kind_of(resource)]


def _complete(wanted: int, new: Workload) -> bool:
    return new.current and new.replicas == new.updated == new.ready == wanted


def _identity(workload: Workload) -> Mapping[str, Any]:
    return {"kind": workload.kind, "metadata": workload.live["metadata"]}
