"""Bringing the schedule to the pods: to all whose engine is up at the same time, and read back.

Also to those that are not ready: without its schedule a pod does not get so.

A pod that does not answer is unknown, and holds up nobody: its file brings the schedule. A pass waits for a pod one
second at most; a slower delivery goes on in the background and wakes the resource when it has something new to say.
For a pod that was late the next pass hardly waits, so that it costs the others nothing when changes follow each other.
After two failures in a row a pod is left in peace for a while. It may be out of reach for good, by design (a mesh), and
each pass over its resource reads everything anew, so passes for its sake alone become rare.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.reconcile.delivery import Courier, Delivery, Target
from dsd_operator.reconcile.memory import Memory, PodRecord
from dsd_operator.reconcile.queue import Key
from dsd_operator.status.observed import PushResult, PushState
from dsd_operator.status.pods import can_serve, is_up, name_of
from dsd_runtime.protocol import Revision

WAIT_SECONDS: Final = 1.0
"""A pass waits this long for deliveries that it started itself."""

LATE_WAIT_SECONDS: Final = 0.1
"""And this long where the pod was late the last time: enough for one that answers again."""

_PATIENCE: Final = 2
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_AGAIN_SECONDS: Final = 0.5
_LONGEST_AGAIN_SECONDS: Final = 300.0
_SPREAD: Final = 0.2
"""Share by which these are spread: what cuts off one pod cuts off many."""

_OUT_OF_REACH: Final = frozenset({PushState.UNREACHABLE, PushState.UNAUTHORIZED})
"""Asking again may help without an event that would wake us."""

Pod = Mapping[str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """How the pods stand. `overtaken`: revisions in pods that ours cannot replace; a higher one must be minted."""

    results: tuple[PushResult, ...] = ()
    overtaken: tuple[Revision, ...] = ()
    again: float = 0.0
    """Seconds after which asking again is worth another pass; 0: no need."""


@dataclass
class Pusher:
    """Pushes to the pods of any resource."""

    courier: Courier
    clock: Callable[[], float]
    """Monotonic seconds."""
    wake: Callable[[Key], None]
    """Asks for another pass of a resource."""
    wait: float = WAIT_SECONDS
    spread: Callable[[], float] = random.random
    _running: set[asyncio.Task[Delivery]] = field(default_factory=set)

    async def push(self, target: Target, pods: Sequence[Pod], memory: Memory) -> Report:
        """Bring `target` to every pod that can hold a schedule. Raises nothing for a pod that fails."""
        able = {pod["metadata"]["uid"]: pod for pod in pods if can_serve(pod)}
        self._drop(record for uid, record in memory.pods.items() if uid not in able)
        memory.pods = {uid: memory.pods.get(uid) or PodRecord() for uid in able}
        started = [record for uid, pod in able.items() if self._start(target, pod, record := memory.pods[uid])]
        await self._wait([record for record in started if not record.late], self.wait)
        await self._wait([record for record in started if record.late], min(self.wait, LATE_WAIT_SECONDS))
        found = [(record, self._look(target, able[uid], record)) for uid, record in memory.pods.items()]
        late = [record for record, delivery in found if delivery.result.state in _OUT_OF_REACH]
        return Report(
            tuple(delivery.result for _, delivery in found),
            tuple(delivery.overtaken for _, delivery in found if delivery.overtaken is not None),
            min((self._again(record) for record in late), default=0.0),
        )

    def forget(self, memory: Memory) -> None:
        """The resource is gone: nothing is delivered to its pods any more."""
        self._drop(memory.pods.values())

    def close(self) -> None:
        """Stop all deliveries."""
        for task in self._running:
            task.cancel()

    async def _wait(self, records: Sequence[PodRecord], seconds: float) -> None:
        """Wait for the deliveries to these pods, and remember which of them were late."""
        tasks = [record.task for record in records if record.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for record in records:
            record.late = record.task is not None and not record.task.done()

    def _start(self, target: Target, pod: Pod, record: PodRecord) -> bool:
        """Start a delivery, unless one of the same target runs, or there is nobody to deliver to."""
        ip = pod.get("status", {}).get("podIP")
        if not ip or not is_up(pod):
            self._drop([record])
            record.delivery, record.failures, record.not_before, record.late = None, 0, 0.0, False
            return False
        if record.task is not None and record.target == target:
            return False
        if record.delivery is not None and self.clock() < record.not_before:
            return False
        self._drop([record])
        known = record.delivery.reported if record.delivery is not None else None
        # A task of its own: the pass may end before it.
        task = asyncio.create_task(self.courier.deliver(target, name_of(pod), ip, known), name=name_of(pod))
        record.task, record.target, record.shown = task, target, None
        self._running.add(task)
        task.add_done_callback(lambda done: self._finish(done, record))
        return True

    def _finish(self, task: "asyncio.Task[Delivery]", record: PodRecord) -> None:
        self._running.discard(task)
        if record.task is not task or task.cancelled():
            return
        record.task = None
        record.delivery = _outcome(task)
        self._count(record, record.delivery)
        if record.target is not None and record.shown is not None and not _alike(record.shown, record.delivery.result):
            self.wake(record.target.key)

    def _again(self, record: PodRecord) -> float:
        """When to look at a pod out of reach again: longer after each failure, and not before it is asked again. Of one
        that is being asked news comes by itself."""
        plain = min(_LONGEST_AGAIN_SECONDS, _FIRST_AGAIN_SECONDS * 2.0 ** min(max(record.failures - 1, 0), 16))
        due = _FIRST_PAUSE_SECONDS if record.task is not None else record.not_before - self.clock()
        return max(plain, due) * (1 + _SPREAD * self.spread())

    def _count(self, record: PodRecord, delivery: Delivery) -> None:
        record.failures = record.failures + 1 if delivery.result.state in _OUT_OF_REACH else 0
        record.not_before = 0.0
        if record.failures >= _PATIENCE and delivery.result.state is PushState.UNREACHABLE:
            pause = _FIRST_PAUSE_SECONDS * 2.0 ** min(record.failures - _PATIENCE, 8)
            record.not_before = self.clock() + min(pause, _LONGEST_PAUSE_SECONDS)

    def _look(self, target: Target, pod: Pod, record: PodRecord) -> Delivery:
        """How the pod stands now. While it is being asked again what it said last holds, if that was about `target`."""
        if record.task is None:
            return record.delivery or Delivery(PushResult(name_of(pod), PushState.NOT_READY))
        last = record.delivery
        if last is not None and last.result.status is not None and target.in_use(last.result.status):
            record.shown = last.result
        else:
            record.shown = PushResult(name_of(pod), PushState.UNREACHABLE, "no answer in time")
        return Delivery(record.shown)

    def _drop(self, records: Iterable[PodRecord]) -> None:
        for record in records:
            if record.task is not None:
                record.task.cancel()
                record.task = None


def _alike(one: PushResult, other: PushResult) -> bool:
    return (one.state, one.message) == (other.state, other.message)


def _outcome(task: "asyncio.Task[Delivery]") -> Delivery:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("A delivery failed in a way that nobody foresaw; this is a fault of the operator", exc_info=error)
    return Delivery(PushResult(task.get_name(), PushState.UNREACHABLE, f"a fault of the operator: {error!r}"))
