"""One schedule to one pod: ask, write if need be, read back. What comes of it is a `Delivery`, never an exception."""

import asyncio
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.keys import REFRESH_AFTER_REFUSAL_SECONDS, Keys
from dsd_operator.cluster.tokens import Tokens
from dsd_operator.engine.client import EngineClient, NoAnswer, NoPlugin, Problem
from dsd_operator.reconcile.queue import Key
from dsd_operator.status.observed import PushResult, PushState
from dsd_operator.status.schedule import NO_TOKEN
from dsd_runtime.protocol import EngineStatus, Revision, SchedulePut
from dsd_runtime.schedule import Ranges, Smoothing, schedule_hash

_REFUSED_TOKEN: Final = (401, 403)
_STALE: Final = 409
_SERVER_ERROR: Final = 500

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """The schedule that every pod of a resource shall use."""

    key: Key
    audience: str
    revision: Revision
    ranges: Ranges
    smoothing: Smoothing | None = None

    @cached_property
    def hash(self) -> str:
        """The schedule's content hash; asked for with each pod."""
        return schedule_hash(self.ranges, self.smoothing)

    def in_use(self, status: EngineStatus) -> bool:
        """Whether the pod, and each of its engine cores, uses exactly this."""
        schedule = status.schedule
        if schedule is None or (schedule.hash, schedule.revision) != (self.hash, self.revision):
            return False
        return all(e.schedule.hash == self.hash for e in status.engines)


@dataclass(frozen=True)
class Delivery:
    """What came of it. `overtaken`: the pod holds this revision, which ours cannot replace; a higher one is needed."""

    result: PushResult
    overtaken: Revision | None = None

    @property
    def reported(self) -> Revision | None:
        """The revision that the pod said it uses; None where it said nothing that can be relied on."""
        status = self.result.status
        if self.overtaken is not None or status is None or status.schedule is None:
            return None
        return status.schedule.revision


@dataclass(frozen=True)
class Courier:
    """Delivers schedules."""

    engines: EngineClient
    tokens: Tokens
    keys: Keys

    async def deliver(self, target: Target, pod: str, ip: str, known: Revision | None) -> Delivery:
        """Bring `target` to the pod. `known` is the revision that it used when it was last heard of, if ever."""
        try:
            status = await self._bring(target, ip, known)
        except (NoAnswer, NoPlugin, Problem, ApiError) as error:
            state, message = _explain(error)
            _log.info("Schedule not brought to pod %s: %s: %s", pod, state, message)
            return Delivery(PushResult(pod, state, message))
        result = _judge(pod, target, status)
        if result.state is PushState.APPLIED and known != target.revision:
            _log.info("Pod %s uses schedule %s, revision %d", pod, target.hash, target.revision.number)
        overtaken = _overtaken(status, target) if result.state is PushState.REFUSED else None
        return Delivery(result, overtaken)

    async def _bring(self, target: Target, ip: str, known: Revision | None) -> EngineStatus:
        """Ask first, unless the pod is known to use another revision: then the change goes out at once."""
        if known is None or known == target.revision:
            status = await self.engines.status(ip)
            if status.mode == "off" or target.in_use(status):
                return status
        try:
            return await self._put(target, ip)
        except Problem as error:
            if error.status != _STALE:
                raise
        return await self.engines.status(ip)

    async def _put(self, target: Target, ip: str) -> EngineStatus:
        """PUT; a refused token is minted anew once, and the keys are looked at, as they may have been rotated."""
        body = SchedulePut(revision=target.revision, ranges=target.ranges, smoothing=target.smoothing)
        token = await self.tokens.get(target.audience)
        try:
            return await self.engines.put(ip, token, body)
        except Problem as error:
            if error.status not in _REFUSED_TOKEN:
                raise
            _log.info("%s refuses the token, another one is minted: %s", ip, error)
        self.tokens.drop(target.audience, token)
        _, fresh = await asyncio.gather(
            self.keys.current(REFRESH_AFTER_REFUSAL_SECONDS), self.tokens.get(target.audience)
        )
        return await self.engines.put(ip, fresh, body)


def _judge(pod: str, target: Target, status: EngineStatus) -> PushResult:
    if status.mode == "off":
        why = status.last_error.message if status.last_error else "it does not say why"
        message = f"a schedule takes a restart, for the runtime is off in vLLM {status.versions.vllm}: {why}"
        return PushResult(pod, PushState.PLUGIN_OFF, message, status)
    if target.in_use(status):
        return PushResult(pod, PushState.APPLIED, "", status)
    return PushResult(pod, PushState.REFUSED, "the pod holds a newer revision, or one that others wrote", status)


def _explain(error: Exception) -> tuple[PushState, str]:
    if isinstance(error, NoPlugin):
        return PushState.PLUGIN_OFF, str(error)
    if isinstance(error, ApiError):
        return PushState.UNAUTHORIZED, f"{NO_TOKEN}: {error.message}"
    if isinstance(error, Problem) and error.status in _REFUSED_TOKEN:
        return PushState.UNAUTHORIZED, str(error)
    if isinstance(error, Problem) and error.status < _SERVER_ERROR:
        return PushState.REFUSED, str(error)
    return PushState.UNREACHABLE, str(error)


def _overtaken(status: EngineStatus, target: Target) -> Revision:
    """The revision that a new one must exceed. Same number, other content: as seen from us it is somebody else's."""
    held = status.schedule.revision if status.schedule is not None else None
    if held is None or held.number <= target.revision.number:
        return Revision(owner="unknown", number=target.revision.number)
    return held
