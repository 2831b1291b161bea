"""Time series: lines, steps and stacks, a right axis, marks of changes, and a legend below."""

import re
import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tools.dashboards.preview import theme
from tools.dashboards.preview.drawing import Drawing
from tools.monitoring.query import Series

_LEGEND: Final = 24
"""Pixels below the time axis for the legend."""


def series(drawing: Drawing) -> None:
    """Draw a panel of values over time."""
    axes = drawing.axes
    inset(axes, left=62, bottom=_LEGEND + 18, right=52 if _has_right(drawing) else 6, top=2)
    _frame(axes, drawing)
    right: Axes | None = None
    handles, colours, stack = [], cycle(theme.PALETTE), _Stack(drawing)
    for name, found in sorted(_named(drawing), key=lambda pair: pair[0]):
        own = _settings(drawing, name)
        colour = theme.colour(own.get("color", {}).get("fixedColor") or next(colours))
        if own.get("custom.axisPlacement") == "right":
            right = right or _right(axes, drawing, own)
            _line(right, drawing, found, colour, dashed=True)
        elif stack.wanted:
            stack.add(axes, found, colour)
        else:
            _line(axes, drawing, found, colour)
        handles.append(Line2D([], [], color=colour, lw=3, ls="--" if right and own.get("unit") else "-", label=name))
    _limits(axes, drawing, stack)
    _marks(axes, drawing)
    legend(axes, handles)


def _named(drawing: Drawing) -> list[tuple[str, Series]]:
    return [pair for answer in drawing.answers for pair in zip(answer.names, answer.series, strict=True)]


def _settings(drawing: Drawing, name: str) -> dict[str, Any]:
    """The overrides of the series with this name."""
    return {
        key: value for pattern, own in drawing.overrides() if re.search(pattern, name) for key, value in own.items()
    }


def _has_right(drawing: Drawing) -> bool:
    return any("custom.axisPlacement" in own for _, own in drawing.overrides())


def inset(axes: Axes, left: float, bottom: float, right: float, top: float) -> None:
    """Make room around axes, in pixels of the layout."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = (size * figure.dpi for size in figure.get_size_inches())
    place = axes.get_position()
    axes.set_position((
        place.x0 + left / width, place.y0 + bottom / height,
        place.width - (left + right) / width, place.height - (bottom + top) / height,
    ))  # fmt: skip


def _frame(axes: Axes, drawing: Drawing) -> None:
    unit = drawing.field["unit"]
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlim(drawing.window.start, drawing.window.end)
    axes.grid(color=theme.GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=theme.FAINT, length=0, labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda t, _: time.strftime("%H:%M:%S", time.gmtime(t))))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=drawing.field.get("decimals") == 0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: theme.written(value, unit)))
    if label := drawing.field["custom"].get("axisLabel"):
        axes.set_ylabel(label, color=theme.FAINT, size=8)


def _right(axes: Axes, drawing: Drawing, own: dict[str, Any]) -> Axes:
    other: Axes = axes.twinx()
    for side in other.spines.values():
        side.set_visible(False)
    other.tick_params(colors=theme.FAINT, length=0, labelsize=8)
    other.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    other.set_ylabel(own.get("custom.axisLabel", ""), color=theme.FAINT, size=8)
    other.set_xlim(drawing.window.start, drawing.window.end)
    return other


def _line(axes: Axes, drawing: Drawing, found: Series, colour: str, *, dashed: bool = False) -> None:
    times, values = with_gaps(found.points, 2.5 * drawing.window.step)
    custom = drawing.field["custom"]
    steps = not dashed and custom.get("lineInterpolation") == "stepAfter"
    width = 1.9 if steps else 1.4
    axes.plot(times, values, color=colour, lw=width, drawstyle="steps-post" if steps else "default",
              ls=(0, (5, 3)) if dashed else "-", solid_capstyle="butt")  # fmt: skip
    if not dashed:
        axes.fill_between(times, values, 0, color=colour, alpha=0.08, lw=0, step="post" if steps else None)
    if dashed:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.15 * np.nanmax(values)))


def with_gaps(points: Sequence[tuple[float, float]], longest: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and values, with a gap wherever no point came for longer than `longest` seconds."""
    times: list[float] = []
    values: list[float] = []
    for moment, value in points:
        if times and moment - times[-1] > longest:
            times.append(moment)
            values.append(float("nan"))
        times.append(moment)
        values.append(value)
    return np.array(times), np.array(values)


class _Stack:
    """Series on top of each other; those before are remembered at every moment of the range."""

    def __init__(self, drawing: Drawing) -> None:
        window = drawing.window
        self.wanted = drawing.field["custom"].get("stacking", {}).get("mode") == "normal"
        self._times = np.arange(window.start, window.end + window.step / 2, window.step)
        self._below = np.zeros(len(self._times))

    @property
    def highest(self) -> float:
        """The top of the stack."""
        return float(self._below.max())

    def add(self, axes: Axes, found: Series, colour: str) -> None:
        """Put one more on top."""
        known = {round(moment): value for moment, value in found.points if value == value}
        values = np.array([known.get(round(moment), 0.0) for moment in self._times])
        top = self._below + values
        axes.fill_between(self._times, self._below, top, color=colour, alpha=0.65, lw=0)
        axes.plot(self._times, top, color=colour, lw=1)
        self._below = top


def _limits(axes: Axes, drawing: Drawing, stack: _Stack) -> None:
    low, high = drawing.field.get("min"), drawing.field.get("max")
    top = 1.06 * stack.highest if stack.wanted else axes.get_ylim()[1]
    if all(value == 0 for line in axes.get_lines() for value in np.asarray(line.get_ydata()) if value == value):
        top = 1.0  # nothing but zeros: a whole unit, as Grafana has it
    bottom = axes.get_ylim()[0] if low is None else low
    axes.set_ylim(bottom, high if high is not None else max(top, bottom + 1e-6 if top > 0 else bottom + 1))
    if (drawing.field["custom"].get("thresholdsStyle") or {}).get("mode") == "line":
        axes.axhline(0, color=theme.FAINT, lw=1.2)


def _marks(axes: Axes, drawing: Drawing) -> None:
    for moment in drawing.changes:
        axes.axvline(moment, color=theme.colour("orange"), lw=0.9, ls=(0, (4, 3)), alpha=0.8)
        axes.plot([moment], [0], marker="^", ms=5, color=theme.colour("orange"), clip_on=False,
                  transform=axes.get_xaxis_transform())  # fmt: skip


def legend(axes: Axes, handles: Sequence[Line2D]) -> None:
    """Names below the axes; what does not fit is counted."""
    room = axes.get_window_extent().width / 6.3
    shown: list[Line2D] = []
    used = 0.0
    for handle in handles:
        used += len(str(handle.get_label())) + 5
        if used > room and shown:
            shown.append(Line2D([], [], lw=0, label=f"+{len(handles) - len(shown)}"))
            break
        shown.append(handle)
    below = -(_LEGEND + 16) / (axes.get_window_extent().height or 1)
    axes.legend(handles=shown, loc="lower left", bbox_to_anchor=(-0.01, below - 0.02), ncols=max(1, len(shown)),
                frameon=False, fontsize=8, labelcolor=theme.TEXT, handlelength=1.2, columnspacing=1.2,
                handletextpad=0.5, borderaxespad=0)  # fmt: skip
