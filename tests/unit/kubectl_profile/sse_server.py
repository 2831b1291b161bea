"""An HTTP server on loopback that streams completions as vLLM does, and answers in the ways that engines fail."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

DEADLINE = 30.0

Cut = Literal["", "connection", "done"]


class SseServer:
    """Each completion waits until `together` of them run, so that a load with fewer gets stuck.

    `fail` is an HTTP status to refuse with; `cut` ends a stream before its end: the connection, or the answer without
    its last event; `per_event` tokens come in one event.
    """

    def __init__(self, together: int = 1, fail: int = 0, cut: Cut = "", per_event: int = 1) -> None:
        self.fail, self.cut, self.per_event = fail, cut, per_event
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(together, timeout=DEADLINE)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def patient(self) -> bool:
        """Whether requests that wait for others would wait on."""
        return not self._barrier.broken

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._barrier.abort()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Nothing."""

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                server.bodies.append(json.loads(content))
                server.keys.append(self.headers.get("Authorization"))
                with suppress(OSError, threading.BrokenBarrierError):
                    server.answer(self, server.bodies[-1])
                    return
                self.close_connection = True

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Refuse, or stream the tokens."""
        if self.fail:
            content = json.dumps({"error": {"message": "no such thing"}}).encode()
            handler.send_response(self.fail)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
            return
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            self._barrier.wait()
            self._stream(handler, int(body["max_tokens"]))
        finally:
            with self._lock:
                self._running -= 1

    def _stream(self, handler: BaseHTTPRequestHandler, tokens: int) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for count in [*range(self.per_event, tokens, self.per_event), tokens]:
            _chunk(handler, {"choices": [{"text": "x"}], "usage": {"completion_tokens": count}})
        if self.cut == "connection":
            handler.close_connection = True
            return
        if not self.cut:
            _chunk(handler, "[DONE]")
        handler.wfile.write(b"0\r\n\r\n")


def _chunk(handler: BaseHTTPRequestHandler, event: Any) -> None:
    data = event if isinstance(event, str) else json.dumps(event)
    content = f"data: {data}\n\n".encode()
    handler.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
