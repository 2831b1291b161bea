"""The code blocks of the documentation, each with the comment before it that says how it is checked.

docs/development/documentation.md has the comments and what they mean; `tests.docs.session` runs the commands.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from tools.cluster.paths import REPOSITORY

LEVELS: Final = ("make", "shell", "api", "node")
"""How commands run: as a dry run of make, in a bare shell, with an API server, on the node with a real engine."""

_PAGES: Final = ("*.md", "docs/**/*.md", "samples/*.md", "charts/*/README.md")
_COMMENT: Final = re.compile(r"^<!-- (.+?) -->$")
_PARSER: Final = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """One block; `comment` is the text of the comment directly before it, `where` its page and line."""

    page: Path
    line: int
    language: str
    text: str
    comment: str

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def level(self) -> str:
        """One of LEVELS, or the path of the test that runs the block; empty when it is not run."""
        return self.comment.removeprefix("run: ").split(",")[0] if self.comment.startswith("run: ") else ""

    @property
    def fails(self) -> bool:
        """Whether the page shows a command that must fail."""
        return self.comment.endswith(", fails")

    @property
    def reason(self) -> str:
        """Why the block is not run or not checked; empty when it is."""
        found = re.match(r"not (?:run|checked): (.+)", self.comment)
        return found[1] if found else ""


def pages() -> list[Path]:
    """Every page that users read."""
    return sorted({path for pattern in _PAGES for path in REPOSITORY.glob(pattern)})


@cache
def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order. A page's `<!-- run all: … -->` is the comment of all its commands."""
    text = page.read_text(encoding="utf-8")
    for_all = re.search(r"^<!-- (run) all(: .+) -->$", text, re.MULTILINE)
    return list(_blocks(page, text, "".join(for_all.groups()) if for_all else ""))


def _blocks(page: Path, text: str, for_all: str) -> Iterator[Block]:
    lines = text.splitlines()
    for token in _PARSER.parse(text):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None, "a block has lines"
        first = token.map[0]
        found = _COMMENT.match(lines[first - 1].strip()) if first else None
        language = token.info.strip().split(" ")[0]
        comment = found[1] if found else for_all if language == "sh" else ""
        yield Block(page, first + 1, language, token.content, comment)


def all_blocks() -> list[Block]:
    """The blocks of all pages."""
    return [block for page in pages() for block in blocks(page)]


def commands(level: str) -> dict[Path, list[Block]]:
    """Pages with commands of `level`, each with its blocks that run there: on an API server those of the bare shell
    too, since they make the files that the others use. What is shown as output comes along."""
    found = {page: blocks(page) for page in pages()}
    return {page: _of_level(each, level) for page, each in found.items() if any(b.level == level for b in each)}


def _of_level(page: list[Block], level: str) -> list[Block]:
    levels = {"shell", "api"} if level == "api" else {level}
    if level == "shell" and any(block.level == "api" for block in page):
        return []
    ours = [block for block in page if block.level in levels]
    shown = outputs(page)
    return [each for block in ours for each in (block, shown.get(block)) if each is not None]


def outputs(page: list[Block]) -> dict[Block, Block]:
    """Each command block that is followed by its output, with that."""
    return {one: two for one, two in pairwise(page) if two.comment == "output"}
