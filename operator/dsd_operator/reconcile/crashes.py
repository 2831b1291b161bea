"""Why an engine over several nodes crashed, kept until its successor serves.

The controller of LeaderWorkerSets makes a group anew at the first crash in it, so no pod of a group stays in a crash
loop: what said why goes with the pod, and its successor only starts, again and again. A successor that is made from
another revision starts with a clean sheet. A cache, as all of `memory`; an operator that starts anew takes what the
status says of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.reconcile.memory import Crash, Memory
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.status.conditions import condition_of
from dsd_operator.status.observed import Observed
from dsd_operator.status.pods import Fault, can_serve, fault_of, is_ready, name_of
from dsd_operator.status.reasons import ConditionType, Reason

_ANEW: Final = "; all pods of this engine are made anew"

_TOLD: Final = re.compile(rf"pod (\S+)(?: \(and \d+ more pods\))?: (.+?{_ANEW})")
"""As `blockers` tells it."""

Pod = Mapping[str, Any]


def earlier_crashes(resource: DSDDeployment, observed: Observed, memory: Memory) -> tuple[Fault, ...]:
    """The crashes of pods whose successors have not become ready, and have no fault of their own."""
    pods = [pod for pod in (*observed.pods, *observed.workers) if groups.number_of(pod) >= 0]
    crashes = dict(_told(resource, pods)) if memory.crashes is None else memory.crashes
    for pod in pods:
        _learn(pod, crashes)
    workload = observed.workload(groups.KIND)
    wanted = int(workload.live["spec"].get("replicas", 1)) if workload else 0
    crashes = memory.crashes = {name: crash for name, crash in crashes.items() if crash.group < wanted}
    told = {name_of(pod) for pod in pods if can_serve(pod) and fault_of(pod) is not None}
    return tuple(crash.fault for name, crash in crashes.items() if name not in told)


def _told(resource: DSDDeployment, pods: Iterable[Pod]) -> Iterator[tuple[str, Crash]]:
    """The crash that the status speaks of, if it is about the present spec, and a pod has come in the place."""
    ready = condition_of(resource.status, ConditionType.READY)
    found, reason = _TOLD.match(str(ready.get("message", ""))), ready.get("reason")
    if found is None or reason not in set(Reason) or ready.get("observedGeneration") != resource.metadata.generation:
        return
    for pod in pods:
        if name_of(pod) == found[1] and can_serve(pod):
            fault = Fault(found[1], Reason(str(reason)), found[2])
            yield found[1], Crash(groups.number_of(pod), groups.revision_of(pod), fault)


def _learn(pod: Pod, crashes: dict[str, Crash]) -> None:
    earlier = crashes.get(name_of(pod))
    if is_ready(pod) or (earlier is not None and can_serve(pod) and earlier.revision != groups.revision_of(pod)):
        crashes.pop(name_of(pod), None)
    if is_ready(pod):
        return
    fault = fault_of(pod)
    if fault is not None and any(_has_crashed(status) for status in _containers(pod)):
        told = replace(fault, message=f"{fault.message}{_ANEW}")
        crashes[name_of(pod)] = Crash(groups.number_of(pod), groups.revision_of(pod), told)


def _containers(pod: Pod) -> Iterable[Mapping[str, Any]]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _has_crashed(container: Mapping[str, Any]) -> bool:
    ends = (container.get(part) or {} for part in ("state", "lastState"))
    return any((end.get("terminated") or {}).get("exitCode") for end in ends)
