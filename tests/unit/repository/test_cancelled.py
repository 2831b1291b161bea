"""A cancelled test run (SIGTERM, as CI sends it) still ends what its fixtures started."""

import os
import subprocess
import sys
from pathlib import Path

from tools.cluster.paths import REPOSITORY

_RUN = """
import os, pathlib, signal
import pytest

@pytest.fixture(scope="session")
def engine():
    yield
    pathlib.Path("ended").touch()

def test_long(engine):
    os.kill(os.getpid(), signal.SIGTERM)
    pathlib.Path("went-on").touch()

def test_next(engine):
    pathlib.Path("went-on").touch()
"""


def test_fixtures_end(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_run.py").write_text(_RUN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + 15, done.stdout + done.stderr
    assert "ended by SIGTERM" in done.stdout
    assert (tmp_path / "ended").exists()
    assert not (tmp_path / "went-on").exists()
