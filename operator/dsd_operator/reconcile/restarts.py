"""Counts restarts of engines, so that an alert on them needs no kube-state-metrics and no scrape of a pod that crashes.

A container's own counter goes with its pod, and starts anew in the next one. This one is the resource's.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dsd_operator.reconcile.memory import Memory
from dsd_operator.status.pods import engine_restarts


def new_restarts(pods: Iterable[Mapping[str, Any]], memory: Memory) -> int:
    """Restarts of the engine containers since the last call.

    The first call finds what happened before the operator started, and counts none of it: nobody knows when it was.
    """
    now = {str(pod["metadata"]["uid"]): engine_restarts(pod) for pod in pods}
    before, memory.restarts = memory.restarts, now
    if before is None:
        return 0
    return sum(max(0, count - before.get(uid, 0)) for uid, count in now.items())
