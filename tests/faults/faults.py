"""The faults that a rule of the proxy can name."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from tests.faults.calls import Call
from tests.faults.proxy import Fault, Forward

_REASONS: Final = {
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
_FOREVER: Final = 3600.0


def refuse(code: int, retry_after: int | None = None) -> Fault:
    """Answer with an error without asking the API server, in the form that it uses itself."""

    async def fault(_call: Call, _request: web.Request, _forward: Forward) -> web.StreamResponse:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
                  "reason": _REASONS[code], "message": f"the proxy says {code}"}  # fmt: skip
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return web.json_response(status, status=code, headers=headers)

    return fault


def slow(seconds: float) -> Fault:
    """Pass on after a while."""

    async def fault(_call: Call, _request: web.Request, forward: Forward) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await forward()

    return fault


async def hang(_call: Call, _request: web.Request, _forward: Forward) -> web.StreamResponse:
    """Never answer."""
    await asyncio.sleep(_FOREVER)
    raise AssertionError("nobody waits that long")


async def reset(_call: Call, request: web.Request, _forward: Forward) -> web.StreamResponse:
    """Break the connection instead of answering."""
    return _break(request)


async def carry_out_and_reset(_call: Call, request: web.Request, forward: Forward) -> web.StreamResponse:
    """Let the API server do it, and break the connection instead of saying so."""
    await forward()
    return _break(request)


async def carry_out_and_fail(_call: Call, _request: web.Request, forward: Forward) -> web.StreamResponse:
    """Let the API server do it, and say that it failed."""
    await forward()
    return web.Response(status=504, text="gateway timeout")


async def nonsense(_call: Call, _request: web.Request, _forward: Forward) -> web.StreamResponse:
    """What a captive portal or a broken load balancer answers."""
    return web.Response(status=200, text="<html>welcome</html>", content_type="text/html")


@dataclass
class Gate:
    """Holds a request until `opened`, and then passes it on though its client may be gone: a packet that was late."""

    opened: bool = False

    async def __call__(self, _call: Call, _request: web.Request, forward: Forward) -> web.StreamResponse:
        """A fault that delays."""
        return await asyncio.shield(asyncio.ensure_future(self._late(forward)))

    async def _late(self, forward: Forward) -> web.Response:
        while not self.opened:  # noqa: ASYNC110 - opened in another thread
            await asyncio.sleep(0.02)
        return await forward()


@dataclass
class KillAfter:
    """Kills the operator when its k-th write has reached the API server, before it hears of that.

    Writes go one by one, so that exactly k of them are carried out; `done` says that it happened.
    """

    k: int
    kill: Callable[[], None]
    done: bool = False
    last: Call | None = None
    """The write that was the operator's last."""
    _count: int = 0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, call: Call, request: web.Request, forward: Forward) -> web.StreamResponse:
        """A fault for all writes."""
        async with self._lock:
            if self._count >= self.k:
                return _break(request)
            answer = await forward()
            self._count, self.last = self._count + 1, call
            if self._count < self.k:
                return answer
            await asyncio.to_thread(self._end)  # goes on when this handler is cancelled, as its client is gone
            return _break(request)

    def _end(self) -> None:
        self.kill()
        self.done = True


def _break(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
