"""What is checked in is what the code makes, and a difference is noticed."""

from pathlib import Path

import pytest

from tools.dashboards import __main__ as generator


def test_nothing_drifted() -> None:
    assert generator.main(["--check"]) == 0


def test_drift_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    assert generator.main([]) == 0
    (tmp_path / "dsd-fleet.json").write_text("{}")
    (tmp_path / "left-over.json").write_text("{}")
    assert generator.main(["--check"]) == 1
    assert capsys.readouterr().err == "dsd-fleet.json, left-over.json: out of date; run `make dashboards`\n"
