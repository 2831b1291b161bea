"""The folder for metrics where the user names none: no start leaves one behind, and no two servers share one."""

import subprocess
import sys
from pathlib import Path

import pytest

from dsd_runtime import metrics_folder
from tests.runtime.server import wait_until

CODE = """
import os, sys
from dsd_runtime import metrics_folder
folder = metrics_folder.prepare({})
open(os.path.join(folder, f"counter_{os.getpid()}.db"), "w").close()
print(folder, flush=True)
os.execv(sys.executable, [sys.executable, "-c", "import sys; sys.stdin.read()"])
"""


class Start:
    """A process that takes a folder, leaves a file in it and becomes another program, as `dsd-serve` does."""

    def __init__(self, temporary: Path) -> None:
        environment = {"TMPDIR": str(temporary), "PYTHONPATH": ":".join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        self.folder = Path(self._process.stdout.readline().strip())
        self.left = self.folder / f"counter_{self._process.pid}.db"

    def end(self) -> None:
        """End it, as a crash would."""
        self._process.kill()
        self._process.communicate()


def test_starts_take_turns_in_one_folder(tmp_path: Path) -> None:
    for _ in range(3):
        start = Start(tmp_path)
        try:
            wait_until("the folder is in use", start.left.exists)
            assert [p.name for p in start.folder.glob("*.db")] == [start.left.name], "what an earlier run left is gone"
        finally:
            start.end()
    (ours,) = tmp_path.iterdir()
    assert [p.name for p in ours.iterdir()] == ["0"]


def test_servers_at_the_same_time_have_folders_of_their_own(tmp_path: Path) -> None:
    first = Start(tmp_path)
    try:
        second = Start(tmp_path)
        try:
            assert (first.folder.name, second.folder.name) == ("0", "1")
            assert first.left.exists(), "the second start wiped the folder of the first"
        finally:
            second.end()
    finally:
        first.end()


def test_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name can be guessed: a link, or a folder that others may write to, could be a trap."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = metrics_folder.private_folder()
    assert ours.stat().st_mode & 0o777 == 0o700
    ours.chmod(0o777)
    assert metrics_folder.private_folder() != ours
    ours.rmdir()
    (tmp_path / "elsewhere").mkdir()
    ours.symlink_to(tmp_path / "elsewhere")
    assert metrics_folder.private_folder() != ours
