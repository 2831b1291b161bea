"""The hook of mkdocs that brings what lies outside docs/ into the site: the changes, the samples, the chart's page.

Pages link to such files as on a disk (`../samples/x.yaml`). The site gets a copy of each file that is linked to, below
`repository/`, and the links are turned there, so that mkdocs checks them like any other.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

_LINK: Final = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")
_FOLDER: Final = "repository"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let the navigation name a folder for all pages in it."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def _expanded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, list):
        return [_expanded(each, docs) for each in entry]
    if isinstance(entry, dict):
        return {title: _expanded(each, docs) for title, each in entry.items()}
    if not (docs / entry).is_dir():
        return entry
    pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.stem != "README", page.name))
    return [page.relative_to(docs).as_posix() for page in pages]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those that these link to."""
    root = Path(config.docs_dir).parent
    waiting = [Path(file.src_uri) for file in files.documentation_pages()]
    seen: set[str] = set()
    while waiting:
        source = waiting.pop()
        for target in _outside(root, source):
            if target not in seen:
                seen.add(target)
                files.append(_file(config, root, target))
                waiting += [Path(_FOLDER) / target] if target.endswith(".md") else []
    return files


def _file(config: MkDocsConfig, root: Path, target: str) -> File:
    source, place = str(root / target), f"{_FOLDER}/{target}"
    return File.generated(config, place, abs_src_path=source, inclusion=InclusionLevel.NOT_IN_NAV)


def _outside(root: Path, source: Path) -> list[str]:
    """What a page links to that lies outside docs/, relative to the repository."""
    text = _path(root, source).read_text(encoding="utf-8")
    found = (_resolve(root, source, link) for _, link, _ in _LINK.findall(text))
    return [target for target in found if target is not None and not target.startswith("docs/")]


def _path(root: Path, source: Path) -> Path:
    """Where a page of the site lies on the disk."""
    outside = source.parts[0] == _FOLDER
    return root / source.relative_to(_FOLDER) if outside else root / "docs" / source


def _resolve(root: Path, source: Path, link: str) -> str | None:
    """The file that a link names, relative to the repository; None where there is none."""
    path = Path(os.path.normpath(_path(root, source).parent / link))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) and path.is_file() else None


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Turn the links that lead outside docs/, and those from there back."""
    root, source = Path(config.docs_dir).parent, Path(page.file.src_uri)

    def turned(match: re.Match[str]) -> str:
        target = _resolve(root, source, match[2])
        if target is None or (target.startswith("docs/") and source.parts[0] != _FOLDER):
            return match[0]
        there = target.removeprefix("docs/") if target.startswith("docs/") else f"{_FOLDER}/{target}"
        return f"{match[1]}{posixpath.relpath(there, source.parent.as_posix())}{match[3]}"

    return _LINK.sub(turned, markdown)
