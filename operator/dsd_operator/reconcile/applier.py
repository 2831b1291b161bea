"""Applying the children without holding up the schedule: a slow answer (an admission webhook) delays no later pass.

`apply` does the work. A pass waits for it a little; what takes longer goes on in the background, is told in the status,
and wakes the resource when it ends. There is never more than one application for a resource: of two, the older could be
carried out last.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.cluster.client import Client
from dsd_operator.reconcile import history, optional
from dsd_operator.reconcile.apply import Report, apply_all
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.queue import Key
from dsd_operator.render.extras import BY_KIND
from dsd_operator.status.observed import ApplyFailure

WAIT_SECONDS: Final = 3.0
"""A pass waits this long for the API server, which takes milliseconds as a rule."""

Object = Mapping[str, Any]


@dataclass
class _Application:
    """Children that are being applied. `left`: the pass that started it went on without it."""

    manifests: tuple[Object, ...]
    task: "asyncio.Task[Report]"
    left: bool = False


@dataclass
class Applier:
    """Applies the children of any resource."""

    client: Client
    wake: Callable[[Key], None]
    """Asks for another pass of a resource."""
    wait: float = WAIT_SECONDS
    _applications: dict[str, _Application] = field(default_factory=dict)
    """By the resource's uid: the one that runs, or that ended after its pass."""

    async def apply(
        self,
        key: Key,
        manifests: Sequence[Object],
        live: Mapping[str, Object],
        memory: Memory,
        unwanted: Sequence[Object] = (),
    ) -> Report:
        """Apply what needs it, delete what is `unwanted`; a child that the API server has not answered for in time is a
        failure until it has."""
        earlier = self._applications.get(memory.uid)
        if earlier is not None and not earlier.task.done():
            return self._unanswered(memory)
        self._applications.pop(memory.uid, None)
        late = _late(earlier, manifests)
        failed = {failure.kind for failure in late.failures}
        wanted = [m for m in manifests if m["kind"] not in failed]
        work = _everything(self.client, wanted, live, memory, unwanted)
        started = self._start(key, memory, wanted, work)
        await asyncio.wait([started.task], timeout=self.wait)
        if not started.task.done():
            started.left = True
            # Newer than what this pass has read: without them the status would speak of the workload from before.
            return late + Report(tuple(memory.stored)) + self._unanswered(memory)
        del self._applications[memory.uid]
        return late + started.task.result()

    def forget(self, memory: Memory) -> None:
        """The resource is gone."""
        ended = self._applications.pop(memory.uid, None)
        if ended is not None:
            ended.task.cancel()

    def close(self) -> None:
        """Stop all applications."""
        for application in self._applications.values():
            application.task.cancel()

    def _start(
        self, key: Key, memory: Memory, manifests: Sequence[Object], work: Coroutine[None, None, Report]
    ) -> _Application:
        memory.stored.clear()
        # A task of its own: the pass may end before it.
        task = asyncio.create_task(work, name=f"apply {key.name}")
        started = self._applications[memory.uid] = _Application(tuple(manifests), task)
        task.add_done_callback(lambda _: self._finish(key, started, memory))
        return started

    def _finish(self, key: Key, application: _Application, memory: Memory) -> None:
        memory.stored.clear()
        if application.left and not application.task.cancelled():
            self.wake(key)

    def _unanswered(self, memory: Memory) -> Report:
        message = f"the API server has not answered for {self.wait:.0f} s; an admission webhook may be slow"
        waiting = (ApplyFailure(kind, name, message) for kind, name in sorted(memory.sending))
        return Report(failures=tuple(waiting), retry=True)


async def _everything(
    client: Client, manifests: Sequence[Object], live: Mapping[str, Object], memory: Memory, unwanted: Sequence[Object]
) -> Report:
    """The children that every resource has, and beside them those that it may do without."""
    always = [m for m in manifests if m["kind"] not in BY_KIND]
    reports = await asyncio.gather(
        apply_all(client, always, live, memory),
        *(optional.bring(client, m, memory) for m in manifests if m["kind"] in BY_KIND),
        *(optional.drop(client, identity, memory) for identity in unwanted),
        history.prune(client, memory),
    )
    return sum(reports, Report())


def _late(earlier: _Application | None, manifests: Sequence[Object]) -> Report:
    """What became of an application that its pass did not wait for, as far as it was about `manifests`.

    Its failures stand: a pass that tried again at once would end as late, and wake the next one. The objects are older
    than what this pass has read.
    """
    if earlier is None or earlier.manifests != tuple(manifests):
        return Report()
    found = earlier.task.result()
    return Report((), found.failures, found.retry, found.delay)
