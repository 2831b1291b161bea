"""Whether a roll-out of engines over several nodes stands still for too long. Of a Deployment its controller says so.

Pure. Progress is what it is there: a change of what is wanted, an engine that became ready. Both, and the beginning,
are times that the objects carry, so an operator that starts anew counts on. That a pod was made is none, nor that a
worker is ready, which has no probe: else a group that crashes and is made anew again and again would get on for ever.
"""

from datetime import datetime

from dsd_operator.api import DSDDeployment
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.deadline import group_deadline
from dsd_operator.status.conditions import condition_of
from dsd_operator.status.reasons import ConditionType, Reason
from dsd_operator.status.workload import Workload


def overdue(resource: DSDDeployment, workload: Workload, now: str) -> bool:
    """Whether the time is over, for a roll-out that is not done. It stays over until there is progress."""
    if not workload.moved_at:
        return False
    told = condition_of(resource.status, ConditionType.PROGRESSING)
    since = str(told.get("lastTransitionTime") or "")
    if told.get("reason") == Reason.PROGRESS_DEADLINE_EXCEEDED:
        return workload.moved_at <= since
    if told.get("status") != "True" or not since:
        return False  # it begins now
    limit = group_deadline(resource.spec, groups.leader_spec(workload.live))
    return _seconds(max(since, workload.moved_at), now) > limit


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
