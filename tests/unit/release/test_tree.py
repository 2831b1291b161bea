"""What the tree must be for a release: committed, with a section of the changelog that carries its date."""

import subprocess
from pathlib import Path

import pytest

from tools.release import checks, versions
from tools.release.checks import CheckError, Release

_WHO = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, as the one to release."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").touch()
    for words in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *_WHO, *words], cwd=root, check=True)
    monkeypatch.setattr(checks, "REPOSITORY", root)
    return root


def test_a_clean_tree_passes_with_its_commit(release: Release, root: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert checks.clean_tree(release) == head.strip()


@pytest.mark.parametrize("name", ["file", "new"])
def test_what_is_not_committed_is_named(release: Release, root: Path, name: str) -> None:
    (root / name).write_text("changed")
    with pytest.raises(CheckError, match=name):
        checks.clean_tree(release)


def test_the_date_is_asked_for_at_the_end_only(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    version = versions.current()
    headings = {False: f"Unreleased ({version})", True: f"{version} (2026-12-01)"}
    for dated, heading in headings.items():
        monkeypatch.setattr(versions, "changes", lambda _, heading=heading: (heading, ["- New."]))
        release.final = False
        assert heading in checks.changelog(release)
        release.final = True
        if dated:
            assert checks.changelog(release)
            continue
        with pytest.raises(CheckError, match=f"date it: ## {version} "):
            checks.changelog(release)


def test_a_version_without_entries_does_not_pass(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "changes", lambda _: ("", []))
    with pytest.raises(CheckError, match="no section with entries"):
        checks.changelog(release)
