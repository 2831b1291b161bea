"""Many who wait share one call, and only so many may wait: what a flood of requests can ask of the engine.

A call to the engine core takes a turn between two steps, so the number of calls must not grow with the number of
clients. `routes` reads the status through `Shared`, and lets writers queue behind `Line`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

HEAD_START_SECONDS: Final = 1.0
"""How long a call may take until the next one no longer waits for it: a slow engine step must not cost a reader two of
them. It bounds the calls in flight, to about one for each second that the engine takes to answer."""

_Result = TypeVar("_Result")


class Shared(Generic[_Result]):
    """Answers everybody who waits from one call.

    A reader never gets what a call brings that began before it asked: it joins the next one, and with it all who ask
    until that one begins.
    """

    def __init__(self, call: Callable[[], Awaitable[_Result]]) -> None:
        self._call = call
        self._running: asyncio.Task[_Result] | None = None
        self._next: asyncio.Task[_Result] | None = None

    async def read(self) -> _Result:
        """The result of a call that begins after this one; raises what the call raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._begin(self._running))
        # One reader that goes away must not take the others' answer along. (It also looks at an error that all of them
        # are gone for, which asyncio would report otherwise.)
        return await asyncio.shield(self._next)

    async def _begin(self, before: asyncio.Task[_Result] | None) -> _Result:
        if before is not None:
            await asyncio.wait({before}, timeout=HEAD_START_SECONDS)
        self._running, self._next = self._next, None
        return await self._call()


class LineIsFullError(Exception):
    """As many wait as may."""


class Line:
    """A lock for which only so many may wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock; raises LineIsFullError at once where the line is full."""
        if self._waiting >= self._most:
            raise LineIsFullError
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()
