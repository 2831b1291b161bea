"""Stages side by side: all run to their end, a failure is not lost, and nothing is left when they are told to end."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tools import side_by_side
from tools.cluster.paths import REPOSITORY
from tools.testbed.waiting import wait_for

_MAKE: Final = """#!/bin/sh
case $1 in
  fails) echo bad; exit 3;;
  meets) mkfifo "$PLACE/fifo" 2>/dev/null; echo word > "$PLACE/fifo";;
  other) while [ ! -p "$PLACE/fifo" ]; do :; done; read word < "$PLACE/fifo"; echo "got $word";;
  hangs) echo $$ > "$PLACE/pid"; exec sleep 600;;
esac
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `make` with four targets, of which two can only end together."""
    program = tmp_path / "make"
    program.write_text(_MAKE)
    program.chmod(0o755)
    monkeypatch.setenv("MAKE", str(program))
    monkeypatch.setenv("PLACE", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("make")
def test_targets_run_at_the_same_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert side_by_side.main(["meets", "other"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "other | got word" in lines
    assert {line.rpartition(" after ")[0] for line in lines} >= {"meets | passed", "other | passed"}


@pytest.mark.usefixtures("make")
@pytest.mark.parametrize("names", [["fails", "meets", "other"], ["meets", "other", "fails"]])
def test_a_failure_is_told_and_the_others_end_by_themselves(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert side_by_side.main(names) == 3
    printed = capsys.readouterr().out
    assert "fails | bad\n" in printed
    assert "other | got word\n" in printed


def test_told_to_end_it_ends_what_it_started(make: Path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "tools.side_by_side", "hangs"], cwd=REPOSITORY)
    pid = int(wait_for("the target to run", lambda: _content(make / "pid"), bool, 60))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_a_target_it_says_how_it_is_used() -> None:
    with pytest.raises(SystemExit, match="TARGET"):
        side_by_side.main([])


def _content(path: Path) -> str:
    return path.read_text() if path.exists() else ""
