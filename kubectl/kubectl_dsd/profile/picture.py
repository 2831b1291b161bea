"""Tables and plot of a profile as an SVG file, by rich."""

import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from kubectl_dsd.errors import Failure

_WIDTH: Final = 120
_FONT: Final = re.compile(r"@font-face\s*\{[^}]*\}")
"""Fonts that whoever opens the file would fetch from the net; the reader's own do."""


def save(parts: Sequence[Table | str], path: Path) -> None:
    """Write the parts as they look on a terminal; raises Failure."""
    console = Console(record=True, file=StringIO(), width=_WIDTH, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part)
        console.print()
    try:
        path.write_text(_FONT.sub("", console.export_svg(title="kubectl dsd profile")))
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error}") from error
