"""What the demo prints: headings, shown commands, tables. Colours only on a terminal."""

import os
import sys
from collections.abc import Sequence

_COLOURS = {"bold": "1", "dim": "2", "green": "32", "cyan": "36", "yellow": "33"}


def paint(text: str, *styles: str) -> str:
    """`text` in the given styles where the output is a terminal and NO_COLOR is unset."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{';'.join(_COLOURS[style] for style in styles)}m{text}\033[0m"


def say(text: str = "") -> None:
    """Print at once."""
    print(text, flush=True)


def heading(number: int, total: int, title: str) -> None:
    """Start a chapter."""
    say(f"\n{paint(f'[{number}/{total}]', 'cyan')} {paint(title, 'bold')}")


def shown(command: str) -> None:
    """Show a command that is about to run, as one would type it."""
    say(f"  {paint('$', 'dim')} {paint(command, 'cyan')}")


def result(text: str) -> None:
    """Show something that was found, indented."""
    say("\n".join(f"  {line}" for line in text.splitlines()))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; numbers are the caller's text, right-aligned."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    result(paint("  ".join(cell.rjust(width) for cell, width in zip(header, widths, strict=True)), "dim"))
    for row in rows:
        result("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
