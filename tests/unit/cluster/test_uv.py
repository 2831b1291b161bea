"""uv is installed once, also when two processes ask, and never found half-made."""

from pathlib import Path

import pytest

from tools.cluster import shell, uv
from tools.cluster.errors import ClusterError


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it goes, on a machine that has none (a version manager's script is none)."""
    script = tmp_path / "bin" / "uv"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dsd-operator" / "uv"


def test_installed_once(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str | Path]] = []

    def run(command: list[str | Path]) -> str:
        commands.append(command)
        program = own.with_name(".uv-new") / "bin" / "uv"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch()
        return ""

    monkeypatch.setattr(shell, "run", run)
    assert uv.ensure() == uv.ensure() == own / "bin" / "uv"
    assert len(commands) == 2, "a virtualenv, and uv in it"
    assert not own.with_name(".uv-new").exists()


def test_failure_leaves_nothing_that_looks_like_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: list[str | Path]) -> str:
        (own.with_name(".uv-new") / "bin").mkdir(parents=True)
        raise ClusterError("no")

    monkeypatch.setattr(shell, "run", fail)
    for _ in range(2):
        with pytest.raises(ClusterError, match="no"):
            uv.ensure()
    assert not own.exists()
