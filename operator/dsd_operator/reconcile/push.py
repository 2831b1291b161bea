"""Bringing the schedule to the pods: to all that are ready at the same time, each within a bounded time, and read back.

A pod that does not answer is unknown, and holds up nobody: its file brings the schedule. After two misses in a row it
is left in peace for a while, so that changes to the others stay fast.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.keys import REFRESH_AFTER_REFUSAL_SECONDS, Keys
from dsd_operator.cluster.tokens import Tokens
from dsd_operator.engine.client import EngineClient, NoAnswer, NoPlugin, Problem
from dsd_operator.reconcile.memory import Memory, PodRecord
from dsd_operator.status.observed import PushResult, PushState
from dsd_operator.status.pods import can_serve, is_ready, name_of
from dsd_runtime.protocol import EngineStatus, Revision, SchedulePut
from dsd_runtime.schedule import Ranges, schedule_hash

_PATIENCE: Final = 2
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 60.0

_REFUSED_TOKEN: Final = (401, 403)
_STALE: Final = 409
_SERVER_ERROR: Final = 500

Pod = Mapping[str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """The schedule that every pod shall use."""

    audience: str
    revision: Revision
    ranges: Ranges

    @property
    def hash(self) -> str:
        """The schedule's content hash."""
        return schedule_hash(self.ranges)

    def in_use(self, status: EngineStatus) -> bool:
        """Whether the pod, and each of its engine cores, uses exactly this."""
        schedule = status.schedule
        if schedule is None or (schedule.hash, schedule.revision) != (self.hash, self.revision):
            return False
        return all(e.schedule.hash == self.hash for e in status.engines)


@dataclass(frozen=True)
class Report:
    """How the pods stand. `overtaken`: revisions in pods that ours cannot replace; a higher one must be minted."""

    results: tuple[PushResult, ...] = ()
    overtaken: tuple[Revision, ...] = ()

    @property
    def retry(self) -> bool:
        """Whether asking again may help without an event that would wake us."""
        return any(r.state in (PushState.UNREACHABLE, PushState.UNAUTHORIZED) for r in self.results)


class _Overtaken(Exception):  # noqa: N818
    def __init__(self, status: EngineStatus, revision: Revision) -> None:
        super().__init__("the pod holds a newer revision")
        self.status = status
        self.revision = revision


@dataclass
class Pusher:
    """Pushes to the pods of any resource."""

    engines: EngineClient
    tokens: Tokens
    keys: Keys
    clock: Callable[[], float]
    """Monotonic seconds."""

    async def push(self, target: Target, pods: Sequence[Pod], memory: Memory) -> Report:
        """Bring `target` to every pod that can hold a schedule. Raises nothing for a pod that fails."""
        able = [pod for pod in pods if can_serve(pod)]
        records = {pod["metadata"]["uid"]: memory.pods.get(pod["metadata"]["uid"], PodRecord()) for pod in able}
        memory.pods = records  # those of pods that are gone go too
        outcomes = await asyncio.gather(*(self._one(target, pod, records[pod["metadata"]["uid"]]) for pod in able))
        return Report(tuple(result for result, _ in outcomes), tuple(r for _, r in outcomes if r is not None))

    async def _one(self, target: Target, pod: Pod, record: PodRecord) -> tuple[PushResult, Revision | None]:
        name, ip = name_of(pod), pod.get("status", {}).get("podIP")
        if not ip or not is_ready(pod):
            record.revision, record.failures = None, 0
            return _remember(record, PushResult(name, PushState.NOT_READY, "the pod is not ready")), None
        if record.result is not None and self.clock() < record.not_before:
            return record.result, None
        try:
            status = await self._bring(target, ip, record)
        except _Overtaken as error:
            record.revision = None
            message = "the pod holds a newer revision"
            return _remember(record, PushResult(name, PushState.REFUSED, message, error.status)), error.revision
        except (NoAnswer, NoPlugin, Problem, ApiError) as error:
            return self._failed(name, record, error), None
        record.failures, record.revision = 0, status.schedule.revision if status.schedule else None
        return _remember(record, _judge(name, target, status)), None

    async def _bring(self, target: Target, ip: str, record: PodRecord) -> EngineStatus:
        """Ask first, unless the pod is known to use another revision: then the change goes out at once."""
        if record.revision is None or record.revision == target.revision:
            status = await self.engines.status(ip)
            if status.mode == "off" or target.in_use(status):
                return status
        try:
            return await self._put(target, ip)
        except Problem as error:
            if error.status != _STALE:
                raise
        status = await self.engines.status(ip)
        if target.in_use(status):
            return status
        raise _Overtaken(status, _above(status, target))

    async def _put(self, target: Target, ip: str) -> EngineStatus:
        """PUT; a refused token is minted anew once, and the keys are looked at, as they may have been rotated."""
        body = SchedulePut(revision=target.revision, ranges=target.ranges)
        token = await self.tokens.get(target.audience)
        try:
            return await self.engines.put(ip, token, body)
        except Problem as error:
            if error.status not in _REFUSED_TOKEN:
                raise
        self.tokens.drop(target.audience, token)
        _, fresh = await asyncio.gather(
            self.keys.current(REFRESH_AFTER_REFUSAL_SECONDS), self.tokens.get(target.audience)
        )
        return await self.engines.put(ip, fresh, body)

    def _failed(self, name: str, record: PodRecord, error: Exception) -> PushResult:
        state, message = _explain(error)
        record.revision = None
        record.failures = record.failures + 1 if state is PushState.UNREACHABLE else 0
        if record.failures >= _PATIENCE:
            pause = _FIRST_PAUSE_SECONDS * 2.0 ** min(record.failures - _PATIENCE, 8)
            record.not_before = self.clock() + min(pause, _LONGEST_PAUSE_SECONDS)
        _log.info("Schedule not brought to pod %s: %s: %s", name, state, message)
        return _remember(record, PushResult(name, state, message))


def _remember(record: PodRecord, result: PushResult) -> PushResult:
    record.result = result
    return result


def _judge(name: str, target: Target, status: EngineStatus) -> PushResult:
    if status.mode == "off":
        message = f"the runtime does not know vLLM {status.versions.vllm}; a schedule takes a restart"
        return PushResult(name, PushState.PLUGIN_OFF, message, status)
    if target.in_use(status):
        return PushResult(name, PushState.APPLIED, "", status)
    return PushResult(name, PushState.REFUSED, "the engine accepted the schedule and does not use it", status)


def _explain(error: Exception) -> tuple[PushState, str]:
    if isinstance(error, NoPlugin):
        return PushState.PLUGIN_OFF, str(error)
    if isinstance(error, ApiError):
        return PushState.UNAUTHORIZED, f"no token for the pod: {error.message}"
    if isinstance(error, Problem) and error.status in _REFUSED_TOKEN:
        return PushState.UNAUTHORIZED, str(error)
    if isinstance(error, Problem) and error.status < _SERVER_ERROR:
        return PushState.REFUSED, str(error)
    return PushState.UNREACHABLE, str(error)


def _above(status: EngineStatus, target: Target) -> Revision:
    """The revision that a new one must exceed. Same number, other content: as seen from us it is somebody else's."""
    held = status.schedule.revision if status.schedule is not None else None
    if held is None or held.number <= target.revision.number:
        return Revision(owner="unknown", number=target.revision.number)
    return held
