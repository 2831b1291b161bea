"""Tables: text, numbers with their units, coloured cells, and bars within cells."""

import re
from collections.abc import Mapping
from typing import Any, Final

from matplotlib.patches import Rectangle

from tools.dashboards.preview import theme
from tools.dashboards.preview.drawing import Drawing
from tools.dashboards.preview.frames import Cell, Frame, frames, transformed

_LETTER: Final = 7.4
"""Width of a letter, in pixels of the layout."""

_ROW: Final = 28
"""Height of a line."""


def table(drawing: Drawing) -> None:
    """Draw the latest values as Grafana's table does."""
    axes = drawing.axes
    (frame,) = transformed(frames(drawing.answers), drawing.panel.get("transformations") or [])
    lines = max(int(axes.get_window_extent().height // _ROW), 1)
    axes.set(xlim=(0, len(frame.columns)), ylim=(lines, 0))
    axes.axis("off")
    for place, column in enumerate(frame.columns):
        axes.text(place + 0.05, 0.5, column, color="#6e9fff", size=9, weight="bold", va="center")
    axes.axhline(1, color=theme.BORDER, lw=1)
    shown = frame.rows[: lines - 1]
    for line, row in enumerate(shown, start=1):
        axes.axhline(line + 1, color=theme.BORDER, lw=0.6)
        for place, column in enumerate(frame.columns):
            _cell(drawing, place, line, column, row.get(column))
    _more(drawing, frame, len(shown), lines)


def _more(drawing: Drawing, frame: Frame, shown: int, lines: int) -> None:
    if len(frame.rows) > shown:
        drawing.axes.text(len(frame.columns), lines - 0.1, f"… {len(frame.rows) - shown} more", color=theme.FAINT,
                          size=8, ha="right", va="bottom")  # fmt: skip


def _cell(drawing: Drawing, place: int, line: int, column: str, value: Cell) -> None:
    own = {key: setting for pattern, found in drawing.overrides() if re.search(pattern, column)
           for key, setting in found.items()}  # fmt: skip
    look = (own.get("custom.cellOptions") or {}).get("type")
    text = _text(drawing, own, value)
    colour = theme.TEXT
    if look == "color-text" and isinstance(value, str):
        colour = _mapped(own, value)
    if look == "color-background" and isinstance(value, float):
        face = theme.by_threshold(value, drawing.field["thresholds"]["steps"])
        drawing.axes.add_patch(Rectangle((place + 0.01, line + 0.04), 0.98, 0.92, fc=face, lw=0))
        colour = "#ffffff"
    if look == "gauge" and isinstance(value, float):
        drawing.axes.add_patch(Rectangle((place + 0.32, line + 0.3), 0.6, 0.4, fc=theme.GRID, lw=0))
        bar = Rectangle((place + 0.32, line + 0.3), 0.6 * min(value, 1), 0.4, fc=theme.colour("green"), lw=0)
        drawing.axes.add_patch(bar)
    if "links" in own:
        colour = "#6e9fff"
    drawing.axes.text(place + 0.05, line + 0.5, _cut(drawing, text), color=colour, size=9, va="center", clip_on=True)


def _cut(drawing: Drawing, text: str) -> str:
    """As much of a text as a column has room for."""
    columns = drawing.axes.get_xlim()[1]
    room = int(0.9 * drawing.axes.get_window_extent().width / columns / _LETTER)
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _text(drawing: Drawing, own: Mapping[str, Any], value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return theme.written(value, own.get("unit", drawing.field["unit"]), own.get("decimals"))


def _mapped(own: Mapping[str, Any], value: str) -> str:
    for mapping in own.get("mappings", []):
        if value in mapping["options"]:
            return theme.colour(mapping["options"][value]["color"])
    return theme.TEXT
