"""One engine over two nodes, here two processes that meet at a port of this machine: vLLM's own multi-node launch.

The schedule goes to the leader, which has the scheduler; the worker follows what it broadcasts. A CPU shows all of it
but the network between GPUs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsd_runtime.follow import LEADER_ENV
from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV
from tests.runtime.conftest import COMMON, NGRAM, wire
from tests.runtime.server import Server, free_port, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.long]

SECRET = "sesame"
PROMPT = "the cat sat on the mat and the cat sat on the mat"
SECONDS = 120
FOLLOW = "import sys; from dsd_runtime import follow; follow.wait_for_leader(port=int(sys.argv[1]))"


@dataclass
class Group:
    """Leader and worker, and the port where they met."""

    leader: Server
    worker: Server
    port: int


@pytest.fixture(scope="module")
def group(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """Both, serving."""
    folder, port = tmp_path_factory.mktemp("group"), free_port()
    (folder / "token").write_text(SECRET)
    config = folder / "config.yaml"
    config.write_text(json.dumps({"ranges": wire([(1, 64, 3)]), "auth": {"tokenFile": "token"}}))
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "8", "--dsd-config", str(config)]
    arguments += ["--speculative-config", json.dumps(NGRAM), "--tensor-parallel-size", "2", "--nnodes", "2"]
    arguments += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    environment = {"VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    folders = [folder / name for name in ("leader", "worker")]
    for each in folders:
        each.mkdir()
    leader = Server(folders[0], [*arguments, "--node-rank", "0"], environment)
    worker = Server(folders[1], [*arguments, "--node-rank", "1", "--headless"], environment)
    try:
        leader.wait_healthy(900)
        yield Group(leader, worker, port)
    finally:
        for one in (leader, worker):
            if one.running():
                one.stop()


def test_outputs_are_those_of_one_process_without_speculation(group: Group, engine_output: list[int]) -> None:
    assert group.leader.complete(PROMPT, 32) == engine_output


@pytest.fixture(scope="module")
def engine_output(models: Path, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The same prompt in one process, without speculation."""
    folder = tmp_path_factory.mktemp("alone")
    server = Server(folder, [str(models / "target"), *COMMON, "--max-num-seqs", "8"])
    try:
        return server.wait_healthy(900).complete(PROMPT, 32)
    finally:
        server.stop()


def test_a_schedule_given_to_the_leader_is_used_by_all(group: Group, engine_output: list[int]) -> None:
    assert [core["engine"] for core in group.leader.status()["engines"]] == [0]
    before = group.leader.total("dsd_steps_total", k="1")
    body = {"revision": {"owner": "o", "number": 9}, "ranges": wire([(1, 64, 1)])}
    answer = group.leader.client.put("/dsd/v1/schedule", json=body, headers={"Authorization": f"Bearer {SECRET}"})
    assert answer.status_code == 200, answer.text
    assert group.leader.complete(PROMPT, 32) == engine_output
    assert group.leader.total("dsd_steps_total", k="1") > before
    assert group.worker.running()


def test_a_worker_waits_for_its_leader_and_then_ends(group: Group) -> None:
    """What Kubernetes does to a worker's pod: it asks, and ends the worker when that has answered."""
    environment = {**os.environ, LEADER_ENV: "127.0.0.1", DRAIN_TIMEOUT_ENV: "600"}
    follower = subprocess.Popen([sys.executable, "-c", FOLLOW, str(group.port)], env=environment)
    try:
        assert group.leader.complete(PROMPT, 32)
        assert follower.poll() is None, "the leader serves"
        group.leader.stop()
        wait_until("the follower to end", lambda: follower.poll() == 0, SECONDS)
    finally:
        follower.kill()
        follower.wait()
    assert group.worker.running(), "a worker does not see its leader go: the controller makes the group anew"
    group.worker.stop()
    assert group.worker.wait_ended() == 0
