"""What answers for a pod in these tests: HTTP on a loopback address of its own, and nothing behind it.

No pod runs on an API server alone, and some faults (a refused token, an engine that never answers) are hard to get
from a real one. Which schedule replaces which, and who may write, is decided by the runtime's own code; only vLLM is
missing (`tools.testbed.fake_engine`). The end-to-end tests do the same with real engines.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dsd_runtime.auth import AuthError, authorize
from dsd_runtime.protocol import (
    HISTORY_PATH,
    PROBLEM_CONTENT_TYPE,
    SCHEDULE_PATH,
    STATUS_PATH,
    ConfigFile,
    EngineHistory,
    ProblemDocument,
)
from tools.testbed.fake_engine import PORT, FakeEngine, problem


class StandIn(FakeEngine):
    """One engine. `config_file` is what its mounted ConfigMap holds when it is asked; None: no file, no writing."""

    def __init__(self, address: str, config_file: Callable[[], ConfigFile | None]) -> None:
        super().__init__()
        self.address = address
        self.config_file = config_file
        self.tokens: list[str] = []
        """Every token that a PUT carried, in order."""
        self.refuse_tokens: set[str] = set()
        self.refuse_first_token = False
        self.silent = threading.Event()
        """While set, requests hang."""
        self.calls = 0
        self.unknown: frozenset[str] = frozenset()
        """Fields of the status that its version of the runtime does not have."""
        self._stopping = threading.Event()
        self._server = _Server((address, PORT), _Handler)
        self._server.engine = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> "StandIn":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def read_file(self) -> None:
        """Do what the runtime does when the kubelet has refreshed the mounted file."""
        self.read(self.config_file())

    def document(self) -> dict[str, Any]:
        """The status as it is sent."""
        return {name: value for name, value in self.status().dump().items() if name not in self.unknown}

    def hold(self) -> None:
        """Let the request hang while the engine is silent."""
        self.calls += 1
        while self.silent.is_set() and not self._stopping.wait(0.02):
            pass

    def admit(self, header: str | None) -> None:
        """The runtime's own check, and the refusals that a test asks for; raises AuthError."""
        token = (header or "").removeprefix("Bearer ")
        self.tokens.append(token)
        if self.refuse_first_token and not self.refuse_tokens:
            self.refuse_tokens.add(token)
        config = self.config_file()
        headers = [] if header is None else [header.encode()]
        authorize(headers, config.auth if config else None, Path())
        if token in self.refuse_tokens:
            raise AuthError(401, "the token is signed with a key that is not among the issuer's")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    engine: StandIn


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        self.server.engine.hold()
        if self.path == STATUS_PATH:
            self._answer(200, self.server.engine.document())
        elif self.path == HISTORY_PATH:
            told = EngineHistory(mode="on", engines=(self.server.engine.history.tell(0),))
            self._answer(200, told.dump())
        else:
            self._answer(404, {"detail": "Not Found"})

    def do_PUT(self) -> None:
        engine = self.server.engine
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        engine.hold()
        if self.path != SCHEDULE_PATH:
            return self._answer(404, {"detail": "Not Found"})
        try:
            engine.admit(self.headers.get("Authorization"))
        except AuthError as error:
            return self._problem(problem(error.status, error.detail))
        refusal = engine.put(body)
        if refusal is not None:
            return self._problem(refusal)
        return self._answer(200, engine.document())

    def _problem(self, document: ProblemDocument) -> None:
        self._answer(document.status, document.dump(), PROBLEM_CONTENT_TYPE)

    def _answer(self, status: int, content: dict[str, Any], content_type: str = "application/json") -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence: the tests look at the state."""
