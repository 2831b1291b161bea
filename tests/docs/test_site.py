"""The documentation builds as a site, with every link and anchor right, and fetches nothing from anywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tools.cluster.paths import REPOSITORY

_FETCHED: Final = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(?:https?:)?//[^"]+"')


def _build(configuration: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command: list[str | Path] = [*mkdocs, "--config-file", configuration, "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; mkdocs finds broken links, broken anchors and pages that the navigation forgets."""
    folder = tmp_path_factory.mktemp("site")
    done = _build(REPOSITORY / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_fetches_nothing(site: Path) -> None:
    """Nor would the theme's script, which gets a library for diagrams where a page has one."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert [str(page.relative_to(site)) for page in pages if _FETCHED.search(page.read_text())] == []
    assert [page.name for page in pages if 'class="mermaid"' in page.read_text()] == []


def test_what_lies_outside_the_folder_is_in_it(site: Path) -> None:
    assert (site / "repository" / "samples" / "rl-rollout.yaml").is_file()
    assert (site / "repository" / "CONTRIBUTING.html").is_file()


def test_comments_are_not_shown(site: Path) -> None:
    """Beside a block, a comment must stay one."""
    text = (site / "getting-started.html").read_text()
    assert "&lt;!-- run" not in re.sub(r"<code>.*?</code>", "", text, flags=re.DOTALL)
    assert "<code>helm install dsd-operator" in re.sub(r"</?(?:span|a)\b[^>]*>", "", text)


@pytest.mark.parametrize("text", ["[x](nowhere.md)", "[x](index.md#nowhere)"])
def test_a_broken_link_is_found(tmp_path: Path, text: str) -> None:
    """The settings of our site, on a page that is wrong."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# T\n\n{text}\n")
    ours = (REPOSITORY / "mkdocs.yml").read_text()
    kept = "site_name: T\n" + ours[ours.index("validation:") :]
    (tmp_path / "mkdocs.yml").write_text(kept)
    done = _build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere" in done.stderr
