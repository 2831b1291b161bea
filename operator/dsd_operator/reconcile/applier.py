"""Applying the children without holding up the schedule: a slow answer (an admission webhook) delays no later pass.

`children` does the work. A pass waits for it a little; what takes longer goes on in the background, is told in the
status, and wakes the resource when it ends. What pods need and what stands beside them are two applications, so that
neither waits for the other. There is never more than one of each for a resource: of two, the older could be carried out
last.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.cluster.client import Client
from dsd_operator.reconcile import children
from dsd_operator.reconcile.apply import LOOK_AGAIN_SECONDS, Report
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.queue import Key
from dsd_operator.render.plan import digest
from dsd_operator.render.workload import KINDS
from dsd_operator.status.observed import ApplyFailure

WAIT_SECONDS: Final = 3.0
"""A pass waits this long for the API server, which takes milliseconds as a rule."""

Object = Mapping[str, Any]


@dataclass(frozen=True)
class _Share:
    """What one application is about. `bring` takes the manifests to try, and whether the workload is to be left."""

    beside: bool
    manifests: tuple[Object, ...]
    bring: Callable[[Sequence[Object], bool], Coroutine[Any, Any, Report]]


@dataclass
class _Application:
    """Children that are being applied. `left`: the pass that started it went on without it."""

    share: _Share
    manifests: tuple[Object, ...]
    task: "asyncio.Task[Report]"
    late: Report
    """What became of the one before, which its pass did not wait for."""
    left: bool = False


@dataclass
class Applier:
    """Applies the children of any resource."""

    client: Client
    wake: Callable[[Key], None]
    """Asks for another pass of a resource."""
    wait: float = WAIT_SECONDS
    _applications: dict[tuple[str, bool], _Application] = field(default_factory=dict)
    """By the resource's uid, and whether it is about what stands beside the pods: the one that runs, or that ended
    after its pass."""

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
        started, report = [], Report()
        for share in self._shares(manifests, live, memory, unwanted):
            earlier = self._applications.get((memory.uid, share.beside))
            if earlier is not None and not earlier.task.done():
                report += self._unanswered(earlier, share.manifests, memory)
            else:
                started.append(self._start(key, share, earlier, memory))
        if started:
            await asyncio.wait([application.task for application in started], timeout=self.wait)
        for application in started:
            application.left = not application.task.done()
        return sum((self._outcome(application, memory) for application in started), report)

    def forget(self, memory: Memory) -> None:
        """The resource is gone."""
        for beside in (False, True):
            ended = self._applications.pop((memory.uid, beside), None)
            if ended is not None:
                ended.task.cancel()

    def close(self) -> None:
        """Stop all applications."""
        for application in self._applications.values():
            application.task.cancel()

    def _shares(
        self, manifests: Sequence[Object], live: Mapping[str, Object], memory: Memory, unwanted: Sequence[Object]
    ) -> tuple[_Share, _Share]:
        needed = tuple(m for m in manifests if not children.is_beside(m))
        beside = tuple(m for m in manifests if children.is_beside(m))
        return (
            _Share(False, needed, lambda some, held: children.bring_needed(self.client, some, live, memory, held)),
            _Share(True, beside, lambda some, _: children.bring_beside(self.client, some, memory, unwanted)),
        )

    def _start(self, key: Key, share: _Share, earlier: _Application | None, memory: Memory) -> _Application:
        self._applications.pop((memory.uid, share.beside), None)
        late = _late(earlier, share.manifests)
        failed = {failure.kind for failure in late.failures}
        wanted = tuple(m for m in share.manifests if m["kind"] not in failed)
        _forget_stored(wanted, memory)
        # A task of its own: the pass may end before it.
        name = f"apply {key.name}" if not share.beside else f"apply beside {key.name}"
        task = asyncio.create_task(share.bring(wanted, late.holds), name=name)
        started = self._applications[memory.uid, share.beside] = _Application(share, wanted, task, late)
        task.add_done_callback(lambda _: self._finish(key, started, memory))
        return started

    def _finish(self, key: Key, application: _Application, memory: Memory) -> None:
        _forget_stored(application.manifests, memory)
        if application.left and not application.task.cancelled():
            self.wake(key)

    def _outcome(self, application: _Application, memory: Memory) -> Report:
        """What a pass can tell of an application that it has started."""
        if application.left:
            # Newer than what this pass has read: without them the status would speak of the workload from before.
            kinds = [m["kind"] for m in application.manifests]
            stored = Report(tuple(memory.stored[kind] for kind in kinds if kind in memory.stored))
            return application.late + stored + self._unanswered(application, application.manifests, memory)
        del self._applications[memory.uid, application.share.beside]
        return application.late + application.task.result()

    def _unanswered(self, application: _Application, wanted: Sequence[Object], memory: Memory) -> Report:
        """The failures of what is `wanted` while an application runs."""
        message = f"the API server has not answered for {self.wait:.0f} s; an admission webhook may be slow"
        kinds = {m["kind"] for m in application.manifests}
        sent = [each for each in sorted(memory.sending) if each[0] in kinds]
        waiting = tuple(ApplyFailure(kind, name, message) for kind, name in sent)
        if application.share.beside:  # outside the backoff of what serves; its end wakes the resource in any case
            return Report(failures=waiting, again=LOOK_AGAIN_SECONDS)
        return Report(failures=(*waiting, *_unsent(application, wanted, sent, memory)), retry=True)


def _unsent(
    application: _Application, wanted: Sequence[Object], sent: Sequence[tuple[str, str]], memory: Memory
) -> list[ApplyFailure]:
    """The workload, if the one that is wanted has yet to be sent: nothing may take the one that runs for it."""
    message = "waits for the objects before it, which the API server has not answered for"
    named = [(m["kind"], m["metadata"]["name"], m) for m in wanted if m["kind"] in KINDS]
    return [
        ApplyFailure(kind, name, message)
        for kind, name, manifest in named
        if (kind, name) not in sent and not (manifest in application.manifests and _is_stored(manifest, memory))
    ]


def _is_stored(manifest: Object, memory: Memory) -> bool:
    applied = memory.applied.get(manifest["kind"])
    return applied is not None and applied.digest == digest(manifest)


def _forget_stored(manifests: Sequence[Object], memory: Memory) -> None:
    for manifest in manifests:
        memory.stored.pop(manifest["kind"], None)


def _late(earlier: _Application | None, manifests: Sequence[Object]) -> Report:
    """What became of an application that its pass did not wait for, as far as it was about `manifests`.

    Its failures stand: a pass that tried again at once would end as late, and wake the next one. The objects are older
    than what this pass has read.
    """
    if earlier is None or earlier.manifests != tuple(manifests):
        return Report()
    found = earlier.task.result()
    return Report((), found.failures, found.retry, found.delay, holds=found.holds)
