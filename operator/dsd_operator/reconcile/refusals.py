"""Why an engine over several nodes has too few pods, when nobody says it to us.

A quota or a webhook that refuses a Deployment's pods is a condition of its ReplicaSet. A StatefulSet has none, and its
Events are not the operator's to read. What can be seen is that its controller knows of too few pods, and that it stays
so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from dsd_operator.reconcile.memory import Memory
from dsd_operator.status.workload import Workload

PATIENCE_SECONDS: Final = 10.0
"""A pod that goes is made anew within milliseconds, by a busy controller within seconds."""


def with_refusals(
    workloads: Iterable[Workload], status: Mapping[str, Any], memory: Memory, now: float
) -> tuple[Workload, ...]:
    """The workloads with what has been lacking for so long among their refusals; `now` in monotonic seconds.

    What the resource's `status` says already has lasted: an operator that starts anew takes it back for no while.
    """
    known = tuple(workloads)
    said = " ".join(str(condition.get("message")) for condition in status.get("conditions") or ())
    lacking = {name: told for workload in known for name, told in workload.lacking.items()}
    since = {name: now - PATIENCE_SECONDS if told in said else now for name, told in lacking.items()}
    memory.lacking = {name: memory.lacking.get(name, since[name]) for name in lacking}
    return tuple(replace(w, refusals=(*w.refusals, *_lasting(w, memory, now))) for w in known)


def _lasting(workload: Workload, memory: Memory, now: float) -> Iterable[str]:
    for name, told in sorted(workload.lacking.items()):
        if now - memory.lacking[name] >= PATIENCE_SECONDS:
            yield told
