"""Every command of the documentation is run by a test, or says why not."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.blocks import LEVELS, Block, all_blocks, blocks, pages
from tests.docs.session import Session, missing_lines
from tools.cluster.paths import REPOSITORY

_PROGRAMS: Final = (
    "apt|apt-get|curl|docker|dsd|dsd-operator|dsd-serve|git|go|helm|kubectl|make|mkdocs|pip|promtool|python3?|uv|vllm"
)
_COMMAND: Final = re.compile(rf"^(\$ )?({_PROGRAMS}) [a-z/.-]")


def _commands() -> list[Block]:
    return [block for block in all_blocks() if block.language == "sh"]


def test_pages_and_commands_are_found() -> None:
    assert len(pages()) > 20
    assert len(_commands()) > 30


def test_every_command_is_run_or_says_why_not() -> None:
    unmarked = [b.where for b in _commands() if not b.reason and b.level not in LEVELS and not _is_test(b)]
    assert unmarked == [], "a comment before the block is missing: see docs/development/documentation.md"


def _is_test(block: Block) -> bool:
    """Whether the comment names a test that names the page, or its folder."""
    path = REPOSITORY / block.level
    if not block.level.startswith("tests/") or not path.is_file():
        return False
    return any(name in path.read_text() for name in (block.page.name, f'"{block.page.parent.name}"'))


def test_commands_stand_in_blocks_that_are_run() -> None:
    other = [b for b in all_blocks() if b.language not in ("sh", "yaml", "python", "promql", "json", "makefile")]
    hidden = [b.where for b in other if any(_COMMAND.match(line) for line in b.text.splitlines())]
    assert hidden == [], "commands belong into a ```sh block"


def test_reasons_say_something() -> None:
    short = [b.where for b in all_blocks() if b.reason and len(b.reason) < 8]
    assert short == []


def test_most_commands_are_run() -> None:
    """Reasons are for what needs a GPU, a registry or the net, and not the easy way out."""
    not_run = [b for b in _commands() if b.reason]
    assert len(not_run) <= len(_commands()) / 3, [f"{b.where}: {b.reason}" for b in not_run]


def test_a_page_is_taken_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# T\n\n<!-- run: api, fails -->\n```sh\nfalse\n```\n\n```yaml\na: 1\n```\n\n    indented\n")
    one, two, three = blocks(page)
    assert (one.language, one.level, one.fails, one.text, one.line) == ("sh", "api", True, "false\n", 4)
    assert (two.language, two.comment, three.language, three.text) == ("yaml", "", "", "indented\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<!-- run: shell -->\n```sh\nx=1\n```\n<!-- run: shell -->\n```sh\nfalse\necho no\n```\n", "page.md:6"),
        ("<!-- run: shell, fails -->\n```sh\ntrue\n```\n", "this must fail"),
        ("<!-- run: shell -->\n```sh\necho a b\n```\n<!-- output -->\n```text\na c\n```\n", "not in the output"),
    ],
)
def test_a_page_that_is_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, complaint: str
) -> None:
    monkeypatch.setattr("tests.docs.blocks.REPOSITORY", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(AssertionError, match=complaint):
        Session(folder).run(blocks(page))


def test_a_page_that_is_right(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- run: shell -->\n```sh\nx=kept\n```\n\n<!-- run: shell -->\n```sh\necho $x; ls README.md\n```\n"
        "\n<!-- output -->\n```text\nkept\n```\n\n<!-- run: shell, fails -->\n```sh\nls nothing\n```\n"
    )
    Session(tmp_path).run(blocks(page))


def test_output_is_compared_loosely() -> None:
    printed = "NAME    READY\nllama   2/2   3d\n"
    assert missing_lines("NAME READY\nllama   2/2 …\n", printed) == []
    assert missing_lines("llama 1/2\n", printed) == ["llama 1/2"]
