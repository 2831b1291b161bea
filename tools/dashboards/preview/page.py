"""One dashboard as one picture: its title and variables, and each panel in its place on the grid."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tools.dashboards import grafana
from tools.dashboards.answers import Answer, ask, changes
from tools.dashboards.grafana import Window
from tools.dashboards.preview import lines, maps, numbers, tables, theme
from tools.dashboards.preview.drawing import Drawing
from tools.monitoring.query import Prometheus

Json = Mapping[str, Any]
_WIDTH: Final = 1680
_CELL: Final = 40
_GAP: Final = 8
_HEAD: Final = 96
_TITLE: Final = 30
_DPI: Final = 100
_SCALE: Final = 1.25
"""Pixels of the file for each of the layout's."""


def draw(server: Prometheus, name: str, window: Window, target: Path, **choice: str) -> None:
    """Draw the dashboard `name` as of `window` into the PNG `target`. `choice`: values of its variables."""
    board = grafana.load(name)
    height = _HEAD + _CELL * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"]) + _GAP
    with mpl.rc_context({"font.family": "DejaVu Sans", "text.color": theme.TEXT, "font.size": 8.5}):
        figure = Figure(figsize=(_WIDTH / _DPI, height / _DPI), dpi=_DPI, facecolor=theme.PAGE)
        FigureCanvasAgg(figure)
        sheet = _Sheet(figure, height)
        _head(sheet, board, window, choice)
        marks = changes(server, board, window, **choice)
        for panel in board["panels"]:
            if panel["type"] == "row":
                _heading(sheet, panel)
            else:
                answers = ask(server, board, panel, window, **choice)
                _panel(sheet, panel, answers, window, marks)
        figure.savefig(target, dpi=_DPI * _SCALE, facecolor=theme.PAGE, pil_kwargs={"optimize": True})


@dataclass(frozen=True)
class _Sheet:
    """The figure with places counted in pixels from the upper left corner."""

    figure: Figure
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes that fill this rectangle."""
        return self.figure.add_axes((x / _WIDTH, 1 - (y + height) / self.height, width / _WIDTH, height / self.height))

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Text whose first line is centred at `y`."""
        self.figure.text(x / _WIDTH, 1 - y / self.height, text, va="center", **style)

    def box(self, x: float, y: float, width: float, height: float, face: str = theme.PANEL) -> None:
        """A rectangle with round corners."""
        axes = self.axes(x, y, width, height)
        axes.set(xlim=(0, width), ylim=(0, height))
        axes.axis("off")
        style = "round,pad=0,rounding_size=4"
        axes.add_patch(FancyBboxPatch((1, 1), width - 2, height - 2, boxstyle=style, fc=face, ec=theme.BORDER, lw=1))


def _place(panel: Json) -> tuple[float, float, float, float]:
    cell, grid = (_WIDTH - _GAP) / 24, panel["gridPos"]
    x, y = _GAP + grid["x"] * cell, _HEAD + grid["y"] * _CELL
    return x, y, grid["w"] * cell - _GAP, grid["h"] * _CELL - _GAP


def _head(sheet: _Sheet, board: Json, window: Window, choice: Mapping[str, str]) -> None:
    sheet.text(20, 26, "Dashboards  ›  ", color=theme.FAINT, size=11)
    sheet.text(138, 26, board["title"], size=13, weight="bold")
    start, end = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment)) for moment in (window.start, window.end))
    sheet.text(_WIDTH - 20, 26, f"{start}  to  {end[11:]}  UTC", color=theme.FAINT, size=9.5, ha="right")
    x = 20.0
    for variable in board["templating"]["list"]:
        if variable["type"] == "adhoc":
            continue
        shown = "Prometheus" if variable["type"] == "datasource" else choice.get(variable["name"], "All")
        label, width = variable["label"], 26 + 7.2 * (len(variable["label"]) + len(shown)) + 22
        sheet.box(x, 50, width, 32, face=theme.PANEL)
        sheet.text(x + 12, 66, label, color=theme.FAINT, size=9)
        sheet.text(x + width - 12, 66, shown, size=9, ha="right")
        x += width + 10


def _heading(sheet: _Sheet, panel: Json) -> None:
    x, y, _, height = _place(panel)
    sheet.text(x + 6, y + height / 2 + 4, f"⌄  {panel['title']}", size=11.5, weight="bold")


_PAINTERS: Final[Mapping[str, Callable[[Drawing], None]]] = {
    "stat": numbers.stat,
    "bargauge": numbers.bars,
    "timeseries": lines.series,
    "heatmap": maps.histogram,
    "xychart": maps.squares,
    "table": tables.table,
}


def _panel(sheet: _Sheet, panel: Json, answers: list[Answer], window: Window, marks: Mapping[float, str]) -> None:
    x, y, width, height = _place(panel)
    sheet.box(x, y, width, height)
    sheet.text(x + 12, y + 17, panel["title"], size=9.5, weight="bold")
    axes = sheet.axes(x + 10, y + _TITLE, width - 20, height - _TITLE - 8)
    axes.set_facecolor("none")
    if any(answer.series for answer in answers):
        _PAINTERS[panel["type"]](Drawing(axes, panel, answers, window, marks))
    else:
        axes.axis("off")
        axes.text(0.5, 0.5, panel["fieldConfig"]["defaults"]["noValue"], color=theme.FAINT, size=11, ha="center",
                  va="center", transform=axes.transAxes)  # fmt: skip
