"""An engine that cannot start: what of its log reaches the status, through what the kubelet keeps of it.

Each start of vLLM takes seconds, so these are for `make test-long`; test_last_words has the rules, and asks the
installed vLLM whether it still says what they look for. A hub on the loopback answers as the real one does.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_operator.status.pods import fault_of
from dsd_operator.status.reasons import Reason
from dsd_runtime.last_words import PATH_ENV
from tests.runtime.conftest import COMMON, NGRAM
from tests.runtime.server import Server

pytestmark = [pytest.mark.engine, pytest.mark.long]

HUB_SAYS: Final = {
    "gated": (403, "GatedRepo", "Access to model acme/gated is restricted and you are not in the authorized list."),
    "absent": (401, "RepoNotFound", "Invalid username or password."),
    "bad-token": (401, "", "Invalid credentials in Authorization header"),
    "no-revision": (404, "RevisionNotFound", "Invalid rev id: main"),
}
"""Status, X-Error-Code and X-Error-Message by the model's name."""


class Hub(BaseHTTPRequestHandler):
    """Has no model."""

    def do_GET(self) -> None:
        name = next((name for name in HUB_SAYS if f"/{name}/" in f"{self.path}/"), "absent")
        status, code, message = HUB_SAYS[name]
        self.send_response(status)
        for header, value in (("X-Error-Code", code), ("X-Error-Message", message), ("Content-Length", "0")):
            if value:
                self.send_header(header, value)
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the name that the library calls
    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence."""


@pytest.fixture(scope="module")
def hub() -> Iterator[dict[str, str]]:
    """The environment of an engine that asks this hub."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_x"}
    server.shutdown()
    server.server_close()
    thread.join()


def kept(folder: Path, log: bytes) -> str:
    """What the kubelet keeps of a container that failed (terminationMessagePolicy FallbackToLogsOnError)."""
    return (folder / "termination-log").read_text() or b"\n".join(log.splitlines()[-80:])[-2048:].decode()


def failed(folder: Path, *arguments: str, **environment: str) -> tuple[Reason, str]:
    """What the status says of an engine with these arguments."""
    ranges = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2}]
    (folder / "config.yaml").write_text(json.dumps({"ranges": ranges}))
    (folder / "termination-log").touch()
    all_arguments = [*arguments, *COMMON, "--dsd-config", str(folder / "config.yaml")]
    own = {PATH_ENV: str(folder / "termination-log"), "HF_HOME": str(folder / "hub")}
    server = Server(folder, all_arguments, {**own, **environment})
    try:
        code = server.wait_ended(300)
    finally:
        server.stop()
    assert code != 0
    ended = {"exitCode": code, "reason": "Error", "message": kept(folder, server.log.read_bytes())}
    engine = {"name": "engine", "ready": False, "state": {"terminated": ended}}
    pod: dict[str, Any] = {"metadata": {"name": "demo"}, "status": {"containerStatuses": [engine]}}
    fault = fault_of(pod)
    assert fault is not None
    return fault.reason, fault.message


def ngram(**changes: Any) -> list[str]:
    """The option."""
    return ["--speculative-config", json.dumps({**NGRAM, **changes})]


def test_configuration_that_vllm_refuses(models: Path, tmp_path: Path) -> None:
    """A model without MTP layers, which no rule of the resource can know. Ends the API server."""
    speculative = json.dumps({"method": "mtp", "num_speculative_tokens": 2})
    reason, said = failed(tmp_path, str(models / "target"), "--speculative-config", speculative)
    assert reason is Reason.SPECULATION_UNSUPPORTED
    assert "NotImplementedError: Unsupported speculative method: 'mtp'" in said


def test_engine_core_that_fails(models: Path, tmp_path: Path) -> None:
    """A KV cache that is too small, as when memory is short. The API server's own last words are of no use."""
    reason, said = failed(tmp_path, str(models / "target"), *ngram(), "--num-gpu-blocks-override", "1")
    assert reason is Reason.ENGINE_OUT_OF_MEMORY
    assert "ValueError: No available memory" in said


@pytest.mark.parametrize(
    ("model", "reason", "words"),
    [
        ("gated", Reason.MODEL_ACCESS_DENIED, "gated"),
        ("absent", Reason.MODEL_NOT_FOUND, "is not a valid model identifier"),
        ("bad-token", Reason.MODEL_ACCESS_DENIED, "Invalid credentials"),
        ("no-revision", Reason.MODEL_NOT_FOUND, "revision"),
    ],
)
def test_hub_that_gives_no_model(hub: dict[str, str], tmp_path: Path, model: str, reason: Reason, words: str) -> None:
    found, said = failed(tmp_path, f"acme/{model}", *ngram(), **hub)
    assert found is reason
    assert words in said


@pytest.mark.parametrize(
    ("model", "reason"), [("/models/none", Reason.MODEL_NOT_FOUND), ("acme/none", Reason.MODEL_HUB_UNREACHABLE)]
)
def test_model_that_is_nowhere(tmp_path: Path, model: str, reason: Reason) -> None:
    assert failed(tmp_path, model, *ngram())[0] is reason


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["--kv-cache-dtype", "nonsense"], "invalid choice: 'nonsense'"),
        (["--max-num-batched-tokens", "0"], "max_num_batched_tokens"),
    ],
)
def test_bad_argument(models: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    reason, said = failed(tmp_path, str(models / "target"), *ngram(), *arguments)
    assert reason is Reason.ENGINE_ARGUMENT_INVALID
    assert words in said


def test_number_of_tokens_that_the_schedule_exceeds(models: Path, tmp_path: Path) -> None:
    """Ends `dsd-serve` before vLLM is loaded."""
    reason, said = failed(tmp_path, str(models / "target"), *ngram(num_speculative_tokens=1))
    assert reason is Reason.SPECULATION_UNSUPPORTED
    assert "above the maximum of 1" in said
