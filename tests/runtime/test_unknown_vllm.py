"""A vLLM that the plugin does not know: it must serve, with the schedule as its own static table, and say so."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_runtime.protocol import READY_PATH
from tests.runtime.conftest import COMMON, NGRAM, wire
from tests.runtime.server import Server

pytestmark = pytest.mark.engine

SECRET = "sesame"
PROMPT = "the cat sat on the mat and the cat sat on the mat"


@pytest.fixture(scope="module")
def server(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The installed vLLM under another version: metadata that comes first on the path."""
    folder = tmp_path_factory.mktemp("unknown")
    metadata = folder / "vllm-0.99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.99.0+cpu\n")
    (folder / "token").write_text(SECRET)
    config = folder / "config.yaml"
    config.write_text(json.dumps({"ranges": wire([(1, 64, 2)]), "auth": {"tokenFile": "token"}}))
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "4", "--dsd-config", str(config)]
    server = Server(folder, [*arguments, "--speculative-config", json.dumps(NGRAM)], {"PYTHONPATH": str(folder)})
    try:
        yield server.wait_healthy()
    finally:
        server.stop()


def test_status_says_that_it_is_off(server: Server) -> None:
    status = server.status()
    assert (status["mode"], status["versions"]["vllm"]) == ("off", "0.99.0+cpu")
    assert "0.99.0" in status["lastError"]["message"]
    assert (status["schedule"]["source"], status["schedule"]["ranges"]) == ("start", wire([(1, 64, 2)]))


def test_it_gets_ready(server: Server) -> None:
    """It serves with the schedule, and there is nothing to wait for."""
    assert server.client.get(READY_PATH).status_code == 200


def test_schedule_is_the_static_table_and_not_the_superset(server: Server) -> None:
    assert "'num_speculative_tokens_per_batch_size': [[1, 64, 2]]" in server.log.read_text()
    server.complete(PROMPT, 100)
    accepted = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    assert server.total(accepted, position="1") > 0
    assert server.total(accepted, position="2") == 0


def test_put_is_refused_with_the_reason(server: Server) -> None:
    body = {"revision": {"owner": "o", "number": 1}, "ranges": wire([(1, 64, 1)])}
    assert server.client.put("/dsd/v1/schedule", json=body).status_code == 401
    answer = server.client.put("/dsd/v1/schedule", json=body, headers={"Authorization": f"Bearer {SECRET}"})
    assert answer.status_code == 422
    assert "restart" in answer.json()["detail"]


def test_metrics_say_that_it_is_off(server: Server) -> None:
    assert server.total("dsd_plugin_info", mode="off", vllm_version="0.99.0+cpu") == 1
    assert not [name for name in server.metrics() if name.startswith("dsd_step")]


def test_it_is_logged_once_per_process(server: Server) -> None:
    lines = [line for line in server.log.read_text().splitlines() if "the DSD plugin is off" in line]
    processes = {line.split(")")[0] for line in lines}
    assert len(lines) == len(processes) > 0
