"""`kubectl dsd profile` and `top` on the node: real pods behind the real proxy and port-forward, Ctrl-C half-way.

The commands are those of docs/how-to/profile.md.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tools.cluster import api
from tools.testbed.engine import in_use
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity
from tools.testbed.manifests import MAX_NUM_SEQS, ranges_of
from tools.testbed.waiting import wait_for

BEFORE: Final = from_triples([(1, 6, 4), (7, MAX_NUM_SEQS, 2)])
SECONDS: Final = 300.0
QUICK: Final = ("--duration", "1", "--warm-up", "1", "--max-tokens", "32")

pytestmark = pytest.mark.e2e


def command(handle: Handle, *arguments: str) -> list[str]:
    """The command as users have it, on this cluster."""
    program = str(Path(sys.executable).with_name("kubectl-dsd"))
    return [program, *arguments, "-n", handle.namespace, "--kubeconfig", str(api.full_node_kubeconfig())]


def environment() -> dict[str, str]:
    """With the cluster's own kubectl on the PATH: `profile` forwards ports with it."""
    return {**os.environ, "PATH": f"{api.kubectl().parent}{os.pathsep}{os.environ['PATH']}"}


def run(handle: Handle, *arguments: str) -> dict[str, Any]:
    """Run it to its end; its JSON."""
    done = subprocess.run(
        command(handle, *arguments, "-o", "json"),
        env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def started(handle: Handle, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run it in the background, in a process group of its own; it ends with the block."""
    process = subprocess.Popen(
        command(handle, *arguments), env=environment(), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def ready(shared: Handle) -> Handle:
    """The shared engine with a schedule that no profile sets by itself."""
    shared.set_schedule(BEFORE)
    shared.wait_applied(BEFORE)
    shared.wait_ready()
    return shared


def assert_as_before(handle: Handle) -> None:
    """The resource asks for the schedule from before, and the engine uses it."""
    assert handle.resource()["spec"]["schedule"] == ranges_of(BEFORE)
    handle.wait_applied(BEFORE)
    assert in_use(handle.engine().status()) == {schedule_hash(BEFORE)}


def test_a_profile_finds_a_schedule_and_leaves_the_old_one(ready: Handle) -> None:
    pod = ready.pod()

    found = run(ready, "profile", ready.name, "--concurrency", "1,4", "--k", "0,4", "--rounds", "2", *QUICK)

    assert found["roundsMeasured"] == 2
    assert len(found["samples"]) == 8
    for sample in found["samples"]:
        assert sample["engineTokens"] > 0, sample
        assert sample["clientTokens"] > 0, sample
        assert sample["shareAtK"] > 0.8, sample
        assert (sample["acceptance"] is None) == (sample["numSpeculativeTokens"] == 0), sample
    assert found["bestSchedule"][0]["startBatchSize"] == 1
    assert found["bestSchedule"][-1]["endBatchSize"] == MAX_NUM_SEQS
    assert found["presentSchedule"] == ranges_of(BEFORE)
    assert_as_before(ready)
    assert identity(ready.pod()) == identity(pod)


def test_the_best_schedule_is_applied_where_that_is_wanted(ready: Handle, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n{"prompt": "def f():", "max_tokens": 8}\n')
    arguments = ("--concurrency", "1", "--k", "2", "--rounds", "1", "--prompts", str(prompts), *QUICK)

    found = run(ready, "profile", ready.name, *arguments, "--apply", "--force")

    wanted = from_triples([(1, MAX_NUM_SEQS, 2)])
    assert found["bestSchedule"] == ranges_of(wanted)
    assert ready.resource()["spec"]["schedule"] == ranges_of(wanted)
    assert in_use(ready.engine().status()) == {schedule_hash(wanted)}


def test_top_shows_the_load_and_ctrl_c_brings_the_schedule_back(ready: Handle) -> None:
    arguments = ("profile", ready.name, "--concurrency", "4", "--k", "3", "--rounds", "1")
    with started(ready, *arguments, "--duration", "200", "--warm-up", "0") as process:
        wait_for("requests of the profile to run", lambda: running(ready), lambda n: n >= 3, CHANGE_TIMEOUT, 0.3)
        (row,) = run(ready, "top", ready.name, "--once", "--interval", "1")["pods"]
        spec = ready.resource()["spec"]["schedule"]
        os.killpg(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=SECONDS)

    assert spec == ranges_of(from_triples([(1, MAX_NUM_SEQS, 3)]))
    assert (row["pod"], row["state"]) == (ready.pod()["metadata"]["name"], "serving")
    assert row["numSpeculativeTokens"] == [3]
    assert 2 < row["rates"]["batchSize"] <= 4  # between two requests of a client some steps are short of one
    assert row["rates"]["tokensPerSecond"] > 0
    assert row["rates"]["acceptance"] > 0
    assert process.returncode == 128 + signal.SIGINT, output
    assert "as it was before" in output
    assert "Traceback" not in output
    assert_as_before(ready)


def running(handle: Handle) -> int:
    """Requests that run, as `top` sees them."""
    (row,) = run(handle, "top", handle.name, "--once", "--interval", "0.2")["pods"]
    return int(row["requestsRunning"])
