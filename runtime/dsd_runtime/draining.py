"""How a server leaves without losing a request. `routes` sets it up; pods that the operator makes use it.

Whoever sends requests through a load balancer learns a moment late that a server is leaving, and clients keep their
connections: one that is used again after SIGTERM brings a request to an engine that takes none. So there is a notice
before SIGTERM, a file (`protocol.LEAVING_ENV`). While it is there, the engine serves as ever, every response asks its
client to close the connection, and a second file beside it says, for each API server, that connections are open:
whoever made the notice waits until none is. A stream that began before the notice is followed, on the same connection,
by one more request at most, which is served.
"""

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

from dsd_runtime.protocol import LEAVING_ENV

LOOK_SECONDS: Final = 0.25
LEAST_SECONDS: Final = 1.0
"""What an engine gets to end itself, though its time to drain is over."""

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def notice() -> Path | None:
    """Where the notice would be; None where nobody announces anything."""
    path = os.environ.get(LEAVING_ENV)
    return Path(path) if path else None


def forget(file: Path) -> None:
    """Remove what an earlier life of this container left: the notice `file` and what stands beside it."""
    for left in (file, *file.parent.glob(f"{file.name}.*")):
        left.unlink(missing_ok=True)


class LastResponses:
    """ASGI middleware: while the notice is there, responses carry `Connection: close`."""

    def __init__(self, app: Any, file: Path) -> None:
        self._app = app
        self._file = file

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Send) -> None:
        """Let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self._file.exists():
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, send_last)


class Leaving:
    """One API server on its way out. `state.server` is its uvicorn server, which vLLM sets when it starts."""

    def __init__(self, state: Any, file: Path) -> None:
        self._state = state
        self._notice = file
        self._busy = file.with_name(f"{file.name}.{os.getpid()}")

    async def follow(self) -> None:
        """Keep the file that says that connections are open; until cancelled."""
        with contextlib.suppress(OSError):
            self._busy.touch()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(OSError):
                if self._notice.exists():
                    self.look()

    def look(self) -> None:
        """Whether connections are open now. Idle ones are closed by the server's own keep-alive time, after seconds."""
        if connections_of(self._state):
            self._busy.touch()
        else:
            self._busy.unlink(missing_ok=True)

    def end_in_time(self, client: Any) -> None:
        """Let `client.shutdown` (an AsyncLLM) count the time since the notice as time to drain."""
        original = client.shutdown

        @functools.wraps(original)
        def shutdown(timeout: float | None = None) -> None:
            original(timeout=None if timeout is None else self.left_of(timeout))

        client.shutdown = shutdown

    def left_of(self, timeout: float) -> float:
        """What is left of `timeout` seconds that began with the notice."""
        try:
            since = self._notice.stat().st_mtime
        except OSError:
            return timeout
        return max(min(LEAST_SECONDS, timeout), min(timeout, timeout - (time.time() - since)))


def connections_of(state: Any) -> int:
    """Connections that are open; 0 for a server that is unlike uvicorn's."""
    return len(getattr(getattr(getattr(state, "server", None), "server_state", None), "connections", ()))
