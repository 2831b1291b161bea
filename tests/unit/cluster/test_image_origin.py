"""The revision in an image's labels is that of its inputs, whatever else was committed since."""

import subprocess
from pathlib import Path

import pytest

from tools.cluster.image_origin import DIRTY, build_arguments

_WHO = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *_WHO, *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose first commit has the input, and whose second has not."""
    _git(tmp_path, "init", "-q")
    for name in ("input", "other"):
        (tmp_path / name).write_text(name)
        _git(tmp_path, "add", name)
        _git(tmp_path, "commit", "-q", "-m", name)
    return tmp_path


def test_it_is_the_last_commit_of_the_inputs(root: Path) -> None:
    sha, when = _git(root, "log", "-1", "--format=%H %cI", "HEAD~1").split()
    assert build_arguments(root, [root / "input"]) == {"REVISION": sha, "CREATED": when}


def test_uncommitted_inputs_are_said(root: Path) -> None:
    (root / "other").write_text("changed")
    assert not build_arguments(root, [root / "input"])["REVISION"].endswith(DIRTY)
    assert build_arguments(root, [root / "input", root / "other"])["REVISION"].endswith(DIRTY)


def test_unknown_to_git(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (root / "new").touch()
    assert build_arguments(root, [root / "new"]) == {}
    elsewhere = tmp_path_factory.mktemp("no-repository")
    (elsewhere / "input").touch()
    assert build_arguments(elsewhere, [elsewhere / "input"]) == {}
