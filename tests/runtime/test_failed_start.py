"""An engine that cannot start: what of its log reaches the status, through what the kubelet keeps of it."""

import json
from pathlib import Path

import pytest

from dsd_operator.status.pods import last_lines
from tests.runtime.conftest import COMMON
from tests.runtime.server import Server

pytestmark = pytest.mark.engine

SENTENCE = "NotImplementedError: Unsupported speculative method: 'mtp'"


def kept(log: bytes) -> str:
    """Of a container that failed, with terminationMessagePolicy FallbackToLogsOnError: at most 80 lines, 2048 bytes."""
    return b"\n".join(log.splitlines()[-80:])[-2048:].decode(errors="replace")


def test_vllms_own_sentence_is_kept(models: Path, tmp_path: Path) -> None:
    """Here that the model has no MTP layers, which no rule of the resource can know."""
    ranges = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2}]
    (tmp_path / "config.yaml").write_text(json.dumps({"ranges": ranges}))
    arguments = [str(models / "target"), *COMMON, "--dsd-config", str(tmp_path / "config.yaml")]
    speculative = {"method": "mtp", "num_speculative_tokens": 2}
    server = Server(tmp_path, [*arguments, "--speculative-config", json.dumps(speculative)])
    try:
        with pytest.raises(AssertionError, match="the engine ended with 1"):
            server.wait_healthy()
    finally:
        server.stop()
    assert SENTENCE in last_lines(kept(server.log.read_bytes()))
