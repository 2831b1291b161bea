"""A server that is about to end: clients that keep connections part from it in time, and no response is cut off.

A real uvicorn with a small application; the whole engine is in tests/e2e/test_draining.py.
"""

import asyncio
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import draining
from dsd_runtime.protocol import LEAVING_ENV

pytestmark = pytest.mark.engine


class Application:
    """Answers at once, or streams two chunks with a pause that a test ends."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    async def __call__(self, scope: dict[str, Any], _: Any, send: Any) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"first ", "more_body": True})
            await asyncio.to_thread(self.go_on.wait, 60)
        await send({"type": "http.response.body", "body": b"last"})


class Running:
    """A server in a thread of its own."""

    def __init__(self, file: Path) -> None:
        import uvicorn

        self.application = Application()
        wrapped = draining.LastResponses(self.application, file)
        self.server = uvicorn.Server(uvicorn.Config(wrapped, port=0, lifespan="off", log_level="warning"))
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            await self.server.serve()

        asyncio.run(serve())

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.servers[0].sockets[0].getsockname()[1])

    def let_go(self) -> None:
        """What happens at SIGTERM."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(self._let_go(), self.loop).result(30)

    async def _let_go(self) -> None:
        draining.let_go(self.server)


@contextmanager
def running(file: Path) -> Iterator[Running]:
    made = Running(file)
    made.thread.start()
    while not made.server.started:
        threading.Event().wait(0.01)
    try:
        yield made
    finally:
        made.application.go_on.set()
        made.server.should_exit = True
        made.thread.join(30)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "leaving") as made:
        yield made


def ask(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    connection.request("GET", "/")
    response = connection.getresponse()
    assert response.read() == b"last"
    assert response.getheader("x-own") == "1"
    return response


def test_responses_close_their_connection_once_the_end_is_announced(server: Running, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    assert ask(connection).getheader("connection") is None
    kept = connection.sock
    assert kept is not None
    (tmp_path / "leaving").touch()
    assert ask(connection).getheader("connection") == "close"
    assert connection.sock is None, "the client has parted from the server"


def test_idle_connections_are_closed_at_the_end_and_open_streams_come_to_theirs(server: Running) -> None:
    idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    ask(idle)
    assert idle.sock is not None
    streaming = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    streaming.request("GET", "/stream")
    response = streaming.getresponse()
    assert response.read(6) == b"first "
    assert streaming.sock is not None

    server.let_go()

    assert idle.sock.recv(1) == b"", "the server has closed it"
    server.application.go_on.set()
    assert response.read() == b"last"
    assert streaming.sock.recv(1) == b"", "it goes with the end of its response"


async def test_the_end_of_the_engine_begins_with_the_connections() -> None:
    order: list[str] = []

    class Connection:
        cycle = None

        def shutdown(self) -> None:
            order.append("connection")

    class Client:
        def shutdown(self, timeout: float | None = None) -> None:
            order.append(f"engine {timeout}")

    state, client = SimpleNamespace(), Client()
    draining.leave_with_the_engine(client, state)
    # The server is there after the engine client: vLLM sets it last.
    state.server = SimpleNamespace(server_state=SimpleNamespace(connections={Connection()}))
    await asyncio.to_thread(client.shutdown, timeout=7)
    await asyncio.sleep(0)
    assert sorted(order) == ["connection", "engine 7"]


def test_a_server_that_is_unlike_uvicorn_is_left_alone() -> None:
    draining.let_go(None)
    draining.let_go(SimpleNamespace(server_state=SimpleNamespace(connections=[SimpleNamespace()])))


def test_the_notice_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEAVING_ENV, raising=False)
    assert draining.notice() is None
    monkeypatch.setenv(LEAVING_ENV, "/run/dsd/leaving")
    assert draining.notice() == Path("/run/dsd/leaving")
