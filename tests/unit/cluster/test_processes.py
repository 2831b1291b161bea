"""A process is recognised by pid and start time, so that a recycled pid is never signalled."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tools.cluster import processes, waiting
from tools.cluster.processes import Daemon, Identity


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def identity_of(process: "subprocess.Popen[bytes]") -> Identity:
    identity = processes.identify(process.pid)
    assert identity is not None
    return identity


def daemon_in(directory: Path) -> Daemon:
    return Daemon("sleep", directory / "sleep.json", directory / "sleep.log")


def test_stat_with_spaces_and_parentheses_in_the_name() -> None:
    fields = " ".join(["S", *map(str, range(4, 53))])
    assert processes.parse_stat(f"7 (a) b (c)) {fields}") == ("S", 22)


def test_identity_of_this_process_is_stable() -> None:
    assert processes.identify(os.getpid()) == processes.identify(os.getpid())


def test_ended_process_has_no_identity_even_before_it_is_collected(sleeper: "subprocess.Popen[bytes]") -> None:
    identity = identity_of(sleeper)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert processes.identify(sleeper.pid) is None
    assert not processes.is_alive(identity)


@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot": "another boot"}])
def test_recycled_pid_is_not_signalled(sleeper: "subprocess.Popen[bytes]", change: dict[str, object]) -> None:
    stale = replace(identity_of(sleeper), **change)  # type: ignore[arg-type]
    processes.send(stale, signal.SIGKILL)
    processes.stop(stale, grace=0)
    assert sleeper.poll() is None
    assert processes.is_alive(identity_of(sleeper))


def test_stop_ends_a_process_that_ignores_termination(tmp_path: Path) -> None:
    one = daemon_in(tmp_path)
    one.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 600 & wait; done"], {})
    identity = one.identity()
    assert identity is not None
    one.stop(grace=0)
    assert not processes.is_alive(identity)
    assert not one.record.exists()


def test_daemon_with_recycled_pid_is_left_alone(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    one = daemon_in(tmp_path)
    one.record.write_text(json.dumps(replace(identity_of(sleeper), start_time=1).__dict__))
    assert not one.running()
    one.stop(grace=0)
    assert sleeper.poll() is None


@pytest.mark.parametrize("record", ["", "{", "[]", '{"pid": 1}', "null"])
def test_record_cut_short_by_a_crash_means_not_running(tmp_path: Path, record: str) -> None:
    one = daemon_in(tmp_path)
    one.record.write_text(record)
    assert not one.running()
    one.stop()
    assert not one.record.exists()


def test_log_holds_the_command_and_the_output(tmp_path: Path) -> None:
    one = daemon_in(tmp_path)
    one.start(["sh", "-c", "echo $GREETING"], {"GREETING": "hello"})
    waiting.poll(lambda: "hello\n" in one.log.read_text(), 10)
    assert one.last_lines(1) == "hello"
    assert "sh -c echo $GREETING" in one.log.read_text()
