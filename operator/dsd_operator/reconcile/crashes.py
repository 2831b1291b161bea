"""Why an engine over several nodes crashed, kept until its successor serves.

The controller of LeaderWorkerSets makes a group anew at the first crash in it, so no pod of a group stays in a crash
loop: what said why goes with the pod, and its successor only starts, again and again. A successor that is made from
another revision starts with a clean sheet. A cache, as all of `memory`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dsd_operator.reconcile.memory import Crash, Memory
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.status.observed import Observed
from dsd_operator.status.pods import Fault, can_serve, fault_of, is_ready, name_of

Pod = Mapping[str, Any]


def earlier_crashes(observed: Observed, memory: Memory) -> tuple[Fault, ...]:
    """The crashes of pods whose successors have not become ready, and have no fault of their own."""
    pods = [pod for pod in (*observed.pods, *observed.workers) if groups.number_of(pod) >= 0]
    for pod in pods:
        _learn(pod, memory.crashes)
    workload = observed.workload(groups.KIND)
    wanted = int(workload.live["spec"].get("replicas", 1)) if workload else 0
    memory.crashes = {name: crash for name, crash in memory.crashes.items() if crash.group < wanted}
    told = {name_of(pod) for pod in pods if can_serve(pod) and fault_of(pod) is not None}
    return tuple(crash.fault for name, crash in memory.crashes.items() if name not in told)


def _learn(pod: Pod, crashes: dict[str, Crash]) -> None:
    earlier = crashes.get(name_of(pod))
    if is_ready(pod) or (earlier is not None and can_serve(pod) and earlier.revision != groups.revision_of(pod)):
        crashes.pop(name_of(pod), None)
    if is_ready(pod):
        return
    fault = fault_of(pod)
    if fault is not None and any(_has_crashed(status) for status in _containers(pod)):
        told = replace(fault, message=f"{fault.message}; all pods of this engine are made anew")
        crashes[name_of(pod)] = Crash(groups.number_of(pod), groups.revision_of(pod), told)


def _containers(pod: Pod) -> Iterable[Mapping[str, Any]]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _has_crashed(container: Mapping[str, Any]) -> bool:
    ends = (container.get(part) or {} for part in ("state", "lastState"))
    return any((end.get("terminated") or {}).get("exitCode") for end in ends)
