"""What answers for a pod in these tests: HTTP on a loopback address of its own, and nothing behind it.

No pod runs on an API server alone, and some faults (a refused token, an engine that never answers) are hard to get
from a real one. Which schedule replaces which, and who may write, is decided by the runtime's own code; only vLLM is
missing. The end-to-end tests do the same with real engines.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from dsd_runtime.auth import AuthError, authorize
from dsd_runtime.history import History
from dsd_runtime.protocol import (
    HISTORY_PATH,
    PROBLEM_CONTENT_TYPE,
    SCHEDULE_PATH,
    STATUS_PATH,
    ConfigFile,
    EngineCoreState,
    EngineHistory,
    EngineStatus,
    Envelope,
    ProblemDocument,
    SchedulePut,
    Versions,
)
from dsd_runtime.schedule import ScheduleRange
from dsd_runtime.state import EngineState, Proposal, Result

PORT: Final = 8000

_ENVELOPE: Final = Envelope(
    method="ngram",
    model_runner="V1",
    num_speculative_tokens=3,
    max_num_seqs=256,
    prepared_tokens=(0, 1, 2, 3),
    allowed_tokens=(0, 1, 2, 3),
)
_START: Final = (ScheduleRange(start_batch_size=1, end_batch_size=256, num_speculative_tokens=3),)


class StandIn:
    """One engine. `config_file` is what its mounted ConfigMap holds when it is asked; None: no file, no writing."""

    def __init__(self, address: str, config_file: Callable[[], ConfigFile | None]) -> None:
        self.address = address
        self.config_file = config_file
        self.history = History()
        self.state = EngineState(_ENVELOPE, {}, _START, lambda active: self.history.add(active.shown))
        self.tokens: list[str] = []
        """Every token that a PUT carried, in order."""
        self.refuse_tokens: set[str] = set()
        self.refuse_first_token = False
        self.silent = threading.Event()
        """While set, requests hang."""
        self.calls = 0
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
        config = self.config_file()
        if config is not None:
            self.state.accept(Proposal(config.ranges, config.revision, "file", smoothing=config.smoothing))

    def triples(self) -> list[tuple[int, int, int]]:
        """The schedule in use."""
        return [r.triple() for r in self.state.current.ranges]

    def number(self) -> int | None:
        """The revision in use."""
        revision = self.state.current.revision
        return revision.number if revision else None

    def status(self) -> EngineStatus:
        """The answer to GET."""
        schedule = self.state.current.shown
        core = EngineCoreState(engine=0, schedule=schedule, num_speculative_tokens=3, steps=0)
        versions = Versions(runtime="0.1.0", vllm="0.32.0")
        return EngineStatus(mode="on", versions=versions, envelope=_ENVELOPE, schedule=schedule, engines=(core,))

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
            self._answer(200, self.server.engine.status().dump())
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
            return self._problem(error.status, error.detail)
        put = SchedulePut.model_validate_json(body)
        answer = engine.state.accept(Proposal(put.ranges, put.revision, "http", smoothing=put.smoothing))
        if answer.result in (Result.APPLIED, Result.UNCHANGED):
            return self._answer(200, engine.status().dump())
        return self._problem(409 if answer.result is Result.STALE else 422, answer.text())

    def _problem(self, status: int, detail: str) -> None:
        document = ProblemDocument(type="urn:dsd:problem:test", title="Refused", status=status, detail=detail)
        self._answer(status, document.dump(), PROBLEM_CONTENT_TYPE)

    def _answer(self, status: int, content: dict[str, Any], content_type: str = "application/json") -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence: the tests look at the state."""
