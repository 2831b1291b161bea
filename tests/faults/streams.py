"""Watches on their way through the proxy: passed on line by line, or cut, silenced, broken, robbed of an event."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import ClientError, StreamReader, web

from tests.faults.calls import Call

Event = dict[str, Any]
Filter = Callable[[Call, Event], bool]
"""Whether an event passes."""

_LONGEST_LINE: Final = 2**22


@dataclass
class _Stream:
    call: Call
    answer: web.StreamResponse
    request: web.Request
    silent: bool = False


@dataclass
class Streams:
    """The open watches of one proxy. All methods but those marked run in the proxy's loop."""

    passes: Filter = field(default=lambda _call, _event: True)
    """May be set from anywhere: asked for each event."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """Type, kind and resourceVersion of every event that came to the proxy, bookmarks left out."""
    _open: list[_Stream] = field(default_factory=list)

    async def relay(self, call: Call, source: StreamReader, answer: web.StreamResponse, request: web.Request) -> None:
        """Pass on a watch until one of the two sides ends it."""
        stream = _Stream(call, answer, request)
        self._open.append(stream)
        buffer = b""
        try:
            async for chunk in source.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                assert len(buffer) < _LONGEST_LINE, "a watch event without end"
                for line in lines:
                    if self._lets(call, line) and not stream.silent:
                        await answer.write(line + b"\n")
        except (ClientError, ConnectionError):
            pass
        finally:
            if stream in self._open:
                self._open.remove(stream)

    def _lets(self, call: Call, line: bytes) -> bool:
        event = json.loads(line)
        if event["type"] == "BOOKMARK":
            return True
        meta = event["object"].get("metadata") or {}
        self.events.append((event["type"], event["object"].get("kind", ""), meta.get("resourceVersion", "")))
        return self.passes(call, event)

    def silence(self) -> int:
        """From anywhere: the watches that are open now bring nothing any more, and stay open. Returns how many."""
        streams = list(self._open)
        for stream in streams:
            stream.silent = True
        return len(streams)

    async def cut(self) -> int:
        """End the connections of all watches."""
        streams, self._open = list(self._open), []
        for stream in streams:
            if stream.request.transport is not None:
                stream.request.transport.abort()
        return len(streams)

    async def say(self, event: Event, plural: str) -> int:
        """Put an event of our own into the open watches on a kind; returns how many there are."""
        told = [stream for stream in self._open if stream.call.plural == plural]
        await asyncio.gather(*(s.answer.write(json.dumps(event).encode() + b"\n") for s in told))
        return len(told)
