"""An engine that cannot start: what of its log reaches the status, through what the kubelet keeps of it.

Two starts of vLLM, for `make test-long`; test_last_words has the rules, and asks the installed vLLM whether it still
says what they look for.
"""

import json
from pathlib import Path

import pytest

from dsd_operator.status.pods import last_lines
from dsd_runtime.last_words import PATH_ENV
from tests.runtime.conftest import COMMON, NGRAM
from tests.runtime.server import Server

pytestmark = [pytest.mark.engine, pytest.mark.long]


def kept(folder: Path, log: bytes) -> str:
    """What the kubelet keeps of a container that failed (terminationMessagePolicy FallbackToLogsOnError)."""
    return (folder / "termination-log").read_text() or b"\n".join(log.splitlines()[-80:])[-2048:].decode()


def failed(folder: Path, *arguments: str) -> str:
    """What the status says of an engine with these arguments."""
    ranges = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2}]
    (folder / "config.yaml").write_text(json.dumps({"ranges": ranges}))
    (folder / "termination-log").touch()
    all_arguments = [*arguments, *COMMON, "--dsd-config", str(folder / "config.yaml")]
    server = Server(folder, all_arguments, {PATH_ENV: str(folder / "termination-log")})
    try:
        with pytest.raises(AssertionError, match="the engine ended with 1"):
            server.wait_healthy()
    finally:
        server.stop()
    return last_lines(kept(folder, server.log.read_bytes()))


def test_configuration_that_vllm_refuses(models: Path, tmp_path: Path) -> None:
    """A model without MTP layers, which no rule of the resource can know. Ends the API server."""
    speculative = json.dumps({"method": "mtp", "num_speculative_tokens": 2})
    said = failed(tmp_path, str(models / "target"), "--speculative-config", speculative)
    assert "NotImplementedError: Unsupported speculative method: 'mtp'" in said


def test_engine_core_that_fails(models: Path, tmp_path: Path) -> None:
    """A KV cache that is too small, as when memory is short. The API server's own last words are of no use."""
    arguments = ["--speculative-config", json.dumps(NGRAM), "--num-gpu-blocks-override", "1"]
    assert "ValueError: " in failed(tmp_path, str(models / "target"), *arguments)
