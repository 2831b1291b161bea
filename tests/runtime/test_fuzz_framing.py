"""Requests that no HTTP client makes: broken off in the middle, with lengths that are not true, with wrong chunks.

Whatever comes back (the HTTP server may answer before our route sees it), the schedule stays and the engine serves on.
"""

import json
import socket

import pytest

from tests.runtime import tokens
from tests.runtime.conftest import Engine, wire
from tests.runtime.examples import OWNER
from tests.runtime.server import wait_until

pytestmark = pytest.mark.engine

PATH = b"PUT /dsd/v1/schedule HTTP/1.1\r\nHost: x\r\n"
CASES = {
    "goes away before the body": (b"Content-Length: 200\r\n\r\n", b""),
    "goes away in the body": (b"Content-Length: 9000\r\n\r\n", b"BODY"),
    "goes away in a chunk": (b"Transfer-Encoding: chunked\r\n\r\n", b"fff\r\nBODY"),
    "goes away between chunks": (b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\n{   \r\n"),
    "length too short": (b"Content-Length: 20\r\n\r\n", b"BODY"),
    "length that is no number": (b"Content-Length: abc\r\n\r\n", b"BODY"),
    "negative length": (b"Content-Length: -1\r\n\r\n", b"BODY"),
    "endless length": (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b"BODY"),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 900\r\n\r\n", b"BODY"),
    "length and chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\n{    \r\n0\r\n\r\n"),
    "chunk size that is no number": (b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\nBODY\r\n0\r\n\r\n"),
    "unknown transfer encoding": (b"Transfer-Encoding: gzip, chunked\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    "no length at all": (b"\r\n", b"BODY"),
    "header without an end": (b"X: " + b"y" * 100_000, b""),
    "null in a header": (b"X: a\0b\r\nContent-Length: 2\r\n\r\n", b"{}"),
}


def exchange(engine: Engine, head: bytes, body: bytes) -> bytes:
    """Send a request as it is, close our side, and read what comes back, if anything."""
    authorization = f"Authorization: Bearer {tokens.mint(engine.key)}\r\n".encode()
    with socket.create_connection(("127.0.0.1", engine.server.port), timeout=60) as connection:
        try:
            connection.sendall(PATH + authorization + head + body)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)
        except OSError:  # the server may have closed before all was sent
            return b""


@pytest.mark.parametrize("case", CASES)
def test_framing(engine: Engine, case: str) -> None:
    engine.swap([(1, 64, 2)])
    before = engine.server.status()["schedule"]
    head, template = CASES[case]
    newer = {"revision": {"owner": OWNER, "number": engine.next_number()}, "ranges": wire([(1, 64, 3)])}
    answer = exchange(engine, head, template.replace(b"BODY", json.dumps(newer).encode()))
    assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 5")), answer
    assert engine.server.status()["schedule"] == before
    assert len(engine.server.complete("the cat sat on the mat", 4)) == 4


def test_what_the_client_broke_off_is_no_error_of_the_server(engine: Engine) -> None:
    """A client that goes away leaves no trace of an exception in the log."""
    start = len(engine.server.log.read_bytes())
    for _ in range(3):
        exchange(engine, *CASES["goes away in the body"])
    engine.swap([(1, 64, 1)])
    wait_until("the swap is in force", lambda: engine.in_use() == [(1, 64, 1)])
    assert b"Traceback" not in engine.server.log.read_bytes()[start:]
