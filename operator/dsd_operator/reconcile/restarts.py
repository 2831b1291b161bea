"""Counts restarts of engines, so that an alert on them needs no kube-state-metrics and no scrape of a pod that crashes.

A container's own counter goes with its pod, and starts anew in the next one. This one is the resource's.
"""

from dsd_operator.reconcile.memory import Memory
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.status.observed import Observed
from dsd_operator.status.pods import engine_restarts, name_of


def new_restarts(observed: Observed, memory: Memory) -> int:
    """Restarts of engines since the last call. One over several nodes ends with any of its pods, and all of them end
    with it, so that it counts once.

    The first call finds what happened before the operator started, and counts none of it: nobody knows when it was.
    """
    pods = {str(pod["metadata"]["uid"]): pod for pod in (*observed.pods, *observed.workers)}
    before, memory.restarts = memory.restarts, {uid: engine_restarts(pod) for uid, pod in pods.items()}
    if before is None:
        return 0
    new: dict[str, int] = {}
    for uid, pod in pods.items():
        engine = groups.leader_of(pod) or name_of(pod)
        new[engine] = max(new.get(engine, 0), memory.restarts[uid] - before.get(uid, 0))
    return sum(new.values())
