"""What runs on the node ends in order where `make` is cancelled, and the node with it if it was started for that."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tools import with_node
from tools.cluster import full_node, processes
from tools.cluster.paths import REPOSITORY

_CHILD = """
import pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path("cleaned-up").touch()
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
print("runs", flush=True)
while True:
    time.sleep(0.05)
"""
_PARENT = "import sys, signal; from tools import with_node; signal.signal(signal.SIGTERM, with_node._end)\n"


@pytest.mark.parametrize(
    ("before", "commands"),
    [
        ("nothing", ["down", "up", "images", "the command", "down"]),
        ("killed", ["down", "up", "images", "the command", "down"]),
        ("runs", ["up", "images", "the command"]),
        ("other", ["up", "images", "the command"]),
    ],
)
def test_a_node_that_ran_stays_and_any_other_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, commands: list[str]
) -> None:
    done: list[str] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DSD_KUBECONFIG", "elsewhere" if before == "other" else "")
    monkeypatch.setattr(with_node, "_cluster", _recorder(done, 0))
    monkeypatch.setattr(with_node, "run", _recorder(done, 3))
    if before in ("killed", "runs"):
        _record_component(dead=before == "killed")
    assert with_node.main(["the command"]) == 3
    assert done == commands


def _recorder(done: list[str], status: int) -> Callable[[str | list[str]], int]:
    def record(what: str | list[str]) -> int:
        done.append(" ".join([what] if isinstance(what, str) else what))
        return status

    return record


def _record_component(*, dead: bool) -> None:
    """The record of an etcd: this process, or one that had its number before."""
    place = full_node.layout()
    place.processes.mkdir(parents=True)
    own = processes.identify(os.getpid())
    assert own is not None
    recorded = replace(own, start_time=own.start_time - dead)
    (place.processes / "etcd.json").write_text(json.dumps(asdict(recorded)))


def test_status_is_the_commands() -> None:
    assert with_node.run([sys.executable, "-c", "raise SystemExit(5)"]) == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_has_the_time_to_clean_up(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "child.py").write_text(_CHILD)
    program = f"{_PARENT}with_node.run([sys.executable, 'child.py'])"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "runs\n"
        if number == signal.SIGINT:  # a terminal sends it to all of them
            subprocess.run(["kill", "-INT", "--", f"-{parent.pid}"], check=True)
        else:
            parent.send_signal(number)
        parent.wait(timeout=60)
    assert (tmp_path / "cleaned-up").exists()
