"""The commands of the documentation that need no cluster."""

from pathlib import Path

import pytest

from tests.docs.blocks import commands
from tests.docs.session import Session
from tools.cluster.paths import REPOSITORY

PAGES = commands("shell")
MAKE = commands("make")


@pytest.mark.parametrize("page", MAKE, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_targets_of_make(page: Path, tmp_path: Path) -> None:
    """Dry, for most of them run the tests, the node or a benchmark: the target is there, and its recipe can be read."""
    only = [line for block in MAKE[page] for line in block.text.splitlines() if " make " not in f" {line}"]
    assert only == [], "nothing else stands in such a block"
    Session(tmp_path, prelude='make() { command make --dry-run "$@" > dry-run; }').run(MAKE[page])


@pytest.mark.parametrize("page", [p for p in PAGES if PAGES[p]], ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands(page: Path, tmp_path: Path) -> None:
    Session(tmp_path).run(PAGES[page])
