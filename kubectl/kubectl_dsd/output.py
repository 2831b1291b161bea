"""Prints: tables for people, JSON and YAML for programs. The look is that of the runtime's command `dsd`.

What a cluster says may hold anything, so `plain` goes between it and a terminal.
"""

import sys
from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from dsd_runtime.cli.options import Output
from dsd_runtime.cli.output import note, print_data, print_tables, table, to_yaml

__all__ = ["Output", "console", "marked", "note", "plain", "print_data", "print_tables", "table", "to_yaml"]

_STYLES: Final[Mapping[str, str]] = {"good": "green", "bad": "red", "doubtful": "yellow", "quiet": "dim"}
_PIPE_WIDTH: Final = 1000


def console(*, stderr: bool = False) -> Console:
    """A console that cuts and wraps nothing for a pipe, and takes no markup from what it prints."""
    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else _PIPE_WIDTH
    return Console(width=width, soft_wrap=True, highlight=False, markup=False, emoji=False, stderr=stderr)


def marked(text: str, kind: str = "") -> Text:
    """Text for a terminal in the colour of its kind: good, bad, doubtful, quiet, or none."""
    return Text(plain(text), style=_STYLES.get(kind, ""))


def plain(text: str) -> str:
    """`text` with control characters written out: a terminal would obey them."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
