"""Metric files on a file system that is full or read-only: the process that writes them goes on, and the series heal.

A process of its own for each: prometheus_client decides at import whether it keeps values in files, and without us the
kernel kills it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.server import fill, small_tmpfs

KIB = 1024

WRITER = """
import os, sys, time
from pathlib import Path
from prometheus_client import CollectorRegistry, Counter, generate_latest, multiprocess
from dsd_runtime import metric_files

if sys.argv[2] == "ours":
    metric_files.install()
metric_files.RETRY_SECONDS = 0.05
folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
filler = Path(sys.argv[1]) / "filler"

def fill():
    with filler.open("ab", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass

def exported():
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return sum(line.startswith(b"t_total{") for line in generate_latest(registry).splitlines())

counter = Counter("t", "t", ["n"])
counter.labels("first").inc()
fill()
for n in range(3000):  # about 60 bytes each: far more than the first file
    counter.labels(str(n)).inc()
print("full:", exported(), metric_files.fault())
filler.unlink(missing_ok=True)
while metric_files.fault() and os.access(folder, os.W_OK):
    time.sleep(0.01)
print("room:", exported(), metric_files.fault())
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 512 KiB."""
    with small_tmpfs(tmp_path / "disk", 512 * KIB) as folder:
        yield folder


def write(folder: Path, filler: Path, whose: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    command = [sys.executable, "-c", WRITER, str(filler), whose]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_prometheus_client_alone_is_killed(disk: Path) -> None:
    """Why the module exists. When this fails, prometheus_client has learned to allocate, and the module can go."""
    assert write(disk, disk, "theirs").returncode == -signal.SIGBUS


def test_series_without_room_wait_in_memory_and_appear_with_it(disk: Path) -> None:
    ended = write(disk, disk, "ours")
    assert ended.returncode == 0, ended.stderr
    full, room = ended.stdout.splitlines()
    shown = int(full.split()[1])
    assert 0 < shown < 3001
    assert "No space left on device" in full
    assert room == "room: 3001 None"
    assert ended.stderr.count("metrics are incomplete") == 1
    assert ended.stderr.count("can be written again") == 1, "nothing has to be written for it"


def test_folder_that_is_full_before_the_first_value(disk: Path) -> None:
    """No empty file may stay: whoever reads the folder would fail at it."""
    fill(disk / "filler")
    ended = write(disk, disk, "ours")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0].startswith("full: 0 metrics are incomplete")
    assert ended.stdout.splitlines()[1] == "room: 3001 None"


def test_read_only_folder(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "disk", 512 * KIB, "ro") as folder, small_tmpfs(tmp_path / "o", KIB * 512) as other:
        ended = write(folder, other, "ours")
    assert ended.returncode == 0, ended.stderr
    assert "Read-only file system" in ended.stdout.splitlines()[1]
    assert ended.stderr.count("metrics are incomplete") == 1
