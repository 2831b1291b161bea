"""What runs on the node ends in order where `make` is cancelled."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools import with_node
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
