"""`python -m tools.release check`: every check is told, one that fails keeps no other from running, and counts."""

from pathlib import Path

import pytest

from tools.cluster.errors import ClusterError
from tools.release import __main__ as command
from tools.release import checks
from tools.release.checks import CheckError, Release


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three checks: one that passes, one that fails, one in which a tool fails."""

    def fails(_: Release) -> str:
        raise CheckError("the first line\nthe second")

    def breaks(_: Release) -> str:
        raise ClusterError("no helm")

    for name in list(checks.CHECKS):
        monkeypatch.delitem(checks.CHECKS, name)
    for name, check in {"bad": fails, "broken": breaks, "good": lambda _: "all of it"}.items():
        monkeypatch.setitem(checks.CHECKS, name, check)


def test_each_is_told_and_failures_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--dist", str(tmp_path / "dist"), "check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("passed", "FAILED"))] == [
        ["FAILED", "bad"], ["FAILED", "broken"], ["passed", "good"],
    ]  # fmt: skip
    assert lines[1].strip() == "the second"
    assert lines[-1] == "1 of 3 checks passed; failed: bad, broken"


def test_what_was_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--dist", str(tmp_path / "dist"), "check", "--skip", "bad", "broken"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 1 checks passed; left out: bad, broken"


def test_old_artifacts_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").touch()
    command.main(["--dist", str(tmp_path / "dist"), "check", "--only", "good"])
    assert list((tmp_path / "dist").iterdir()) == []
