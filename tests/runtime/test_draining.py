"""A server that is about to end: clients that keep connections part from it in time, and no response is cut off.

A real uvicorn with a small application; the whole engine is in tests/e2e/test_draining.py.
"""

import asyncio
import http.client
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import draining
from dsd_runtime.protocol import LEAVING_ENV
from tools.testbed.waiting import wait_for

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
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self.server.serve())

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.servers[0].sockets[0].getsockname()[1])


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


def test_a_stream_from_before_is_followed_by_one_request_that_is_served(server: Running, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/stream")
    response = connection.getresponse()
    assert response.read(6) == b"first "
    (tmp_path / "leaving").touch()
    server.application.go_on.set()
    assert response.read() == b"last"
    kept = connection.sock
    assert kept is not None, "nothing told the client to part from it, so it is used again"
    assert ask(connection).getheader("connection") == "close"


def test_a_file_says_whether_connections_are_open(server: Running, tmp_path: Path) -> None:
    leaving = draining.Leaving(SimpleNamespace(server=server.server), tmp_path / "leaving")
    busy = tmp_path / f"leaving.{os.getpid()}"
    leaving.look()
    assert not busy.exists()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    ask(connection)
    leaving.look()
    assert busy.exists()
    (tmp_path / "leaving").touch()
    ask(connection)
    wait_for("the connection to end", lambda: server.server.server_state.connections, lambda found: not found, 30, 0.01)
    leaving.look()
    assert not busy.exists()


async def test_it_is_there_from_the_start_and_followed_once_the_end_is_announced(tmp_path: Path) -> None:
    leaving = draining.Leaving(SimpleNamespace(), tmp_path / "leaving")
    task = asyncio.create_task(leaving.follow())
    busy = tmp_path / f"leaving.{os.getpid()}"
    await until(busy.exists)
    (tmp_path / "leaving").touch()
    await until(lambda: not busy.exists())
    task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_for, "the file to follow", condition, bool, 30, 0.01)


def test_what_an_earlier_life_left_goes(tmp_path: Path) -> None:
    for name in ("leaving", "leaving.7", "prometheus"):
        (tmp_path / name).touch()
    draining.forget(tmp_path / "leaving")
    assert [path.name for path in tmp_path.iterdir()] == ["prometheus"]


@pytest.mark.parametrize(
    ("ago", "left", "give_or_take"), [(0, 30, 5), (10, 20, 5), (100, draining.LEAST_SECONDS, 0), (-100, 30, 0)]
)
def test_the_time_to_drain_begins_with_the_notice(tmp_path: Path, ago: int, left: float, give_or_take: float) -> None:
    file = tmp_path / "leaving"
    file.touch()
    then = time.time() - ago
    os.utime(file, (then, then))
    given: list[float | None] = []

    class Client:
        def shutdown(self, timeout: float | None = None) -> None:
            given.append(timeout)

    client = Client()
    draining.Leaving(SimpleNamespace(), file).end_in_time(client)
    client.shutdown(timeout=30)
    assert given == [pytest.approx(left, abs=give_or_take)]


def test_without_a_notice_all_of_it_is_left(tmp_path: Path) -> None:
    assert draining.Leaving(SimpleNamespace(), tmp_path / "leaving").left_of(30) == 30


def test_no_time_stays_no_time(tmp_path: Path) -> None:
    (tmp_path / "leaving").touch()
    assert draining.Leaving(SimpleNamespace(), tmp_path / "leaving").left_of(0) == 0


def test_a_server_that_is_unlike_uvicorn_has_no_connections() -> None:
    assert draining.connections_of(SimpleNamespace(server=SimpleNamespace())) == 0


def test_the_notice_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEAVING_ENV, raising=False)
    assert draining.notice() is None
    monkeypatch.setenv(LEAVING_ENV, "/run/dsd/leaving")
    assert draining.notice() == Path("/run/dsd/leaving")
