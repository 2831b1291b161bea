"""How a server leaves without losing a request. `routes` sets it up; pods that the operator makes use it.

Whoever sends requests through a load balancer learns a moment late that a server is leaving, and clients keep their
connections: one that is used again after SIGTERM brings a request to an engine that takes none. So there is a notice
before SIGTERM, a file (`protocol.LEAVING_ENV`): while it is there, the engine serves as ever, and every response asks
its client to close the connection. At SIGTERM idle connections are closed, and the others with their response.
"""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from dsd_runtime.protocol import LEAVING_ENV

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def notice() -> Path | None:
    """Where the file would be; None where nobody announces anything."""
    path = os.environ.get(LEAVING_ENV)
    return Path(path) if path else None


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


def leave_with_the_engine(client: Any, state: Any) -> None:
    """Let `client.shutdown` (an AsyncLLM; any thread may call it) begin with the connections of `state.server`, a
    uvicorn server that is set when it starts. Call it from the event loop that serves."""
    loop, original = asyncio.get_running_loop(), client.shutdown

    @functools.wraps(original)
    def shutdown(timeout: float | None = None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(let_go, getattr(state, "server", None))
        original(timeout=timeout)

    client.shutdown = shutdown


def let_go(server: Any) -> None:
    """Close the HTTP connections that are idle, and the others when their response is complete."""
    connections = getattr(getattr(server, "server_state", None), "connections", ())
    for connection in list(connections):
        if hasattr(connection, "cycle"):  # a WebSocket has none, and would be cut off
            connection.shutdown()
