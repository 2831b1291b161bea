"""The map of K against concurrency with the schedule on it, and histograms over time."""

import time
from collections.abc import Mapping
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tools.dashboards.preview import theme
from tools.dashboards.preview.drawing import Drawing
from tools.dashboards.preview.frames import Cell, Frame, frames, transformed
from tools.dashboards.preview.lines import inset

_HALF: Final = 0.46


def squares(drawing: Drawing) -> None:
    """Coloured squares at (concurrency, K), and the schedule as a line over them."""
    axes, options = drawing.axes, drawing.panel["options"]
    inset(axes, left=40, bottom=44, right=96, top=6)
    cells, schedule = transformed(frames(drawing.answers), drawing.panel["transformations"])
    colours, line = options["series"]
    values = [_of(row, colours, "color") for row in cells.rows]
    scale = Normalize(min(values), max(values) if max(values) > min(values) else min(values) + 1)
    shades = mpl.colormaps["viridis"]
    for row, value in zip(cells.rows, values, strict=True):
        x, y = np.log2(_of(row, colours, "x")), _of(row, colours, "y")
        style = "round,pad=0,rounding_size=0.06"
        axes.add_patch(FancyBboxPatch((x - _HALF, y - _HALF), 2 * _HALF, 2 * _HALF, boxstyle=style,
                                      fc=shades(scale(value)), ec="none", mutation_aspect=1))  # fmt: skip
        shade = "#101010" if scale(value) > 0.6 else "#f4f4f4"
        axes.text(x, y + 0.26, theme.written(value, "none", 0), color=shade, size=8.5, ha="center", va="center")
    largest = max(_of(row, colours, "x") for row in cells.rows)
    _schedule(drawing, schedule, line, largest)
    _axes(drawing, largest, max(_of(row, colours, "y") for row in cells.rows))
    _scale(drawing, scale)


def _of(row: Mapping[str, Cell], series: Mapping[str, Any], axis: str) -> float:
    value = row[series[axis]["matcher"]["options"]]
    assert isinstance(value, float)
    return value


def _schedule(drawing: Drawing, schedule: Frame, line: Mapping[str, Any], largest: float) -> None:
    points = [(np.log2(min(_of(row, line, "x"), largest)), _of(row, line, "y")) for row in schedule.rows]
    colour = theme.colour("orange")
    drawing.axes.plot(*zip(*points, strict=True), color=theme.PAGE, lw=6, alpha=0.6, solid_capstyle="round")
    drawing.axes.plot(*zip(*points, strict=True), color=colour, lw=2.6, solid_capstyle="round", label="schedule")
    drawing.axes.legend(loc="lower left", bbox_to_anchor=(-0.01, -0.16), frameon=False, fontsize=8.5,
                        labelcolor=theme.TEXT)  # fmt: skip


def _axes(drawing: Drawing, largest: float, most: float) -> None:
    axes = drawing.axes
    for side in axes.spines.values():
        side.set_visible(False)
    ticks = range(int(np.ceil(np.log2(largest))) + 1)
    axes.set(xlim=(-0.6, max(ticks) + 0.6), ylim=(-0.6, most + 0.6), xticks=ticks, yticks=range(int(most) + 1))
    axes.set_xticklabels([str(2**tick) for tick in ticks])
    axes.set_xlabel("requests in a step", color=theme.FAINT, size=8.5)
    axes.set_ylabel("K", color=theme.FAINT, size=8.5)
    axes.tick_params(colors=theme.FAINT, length=0, labelsize=8.5)


def _scale(drawing: Drawing, scale: Normalize) -> None:
    axes = drawing.axes.inset_axes((1.03, 0.05, 0.018, 0.9))
    low, high = float(scale.vmin or 0), float(scale.vmax or 1)
    axes.imshow(np.linspace(high, low, 128)[:, None], aspect="auto", cmap="viridis", extent=(0, 1, low, high))
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: theme.written(value, "count:tok/s")))
    axes.tick_params(colors=theme.FAINT, length=0, labelsize=8)
    for side in axes.spines.values():
        side.set_visible(False)


def histogram(drawing: Drawing) -> None:
    """Observations by bucket (up) and time (across); the buckets of an answer hold all below them, too."""
    axes, window = drawing.axes, drawing.window
    inset(axes, left=52, bottom=24, right=6, top=4)
    (answer,) = drawing.answers
    ordered = sorted(answer.series, key=lambda series: float(series.labels["le"]))
    times = np.arange(window.start, window.end + window.step / 2, window.step)
    whole = np.array([[dict(s.points).get(float(moment), 0.0) for moment in times] for s in ordered])
    inside = np.maximum(np.diff(whole, axis=0, prepend=0), 0)
    used = max((row for row in range(len(ordered)) if inside[row].sum() > 0), default=0) + 2
    inside = inside[:used]
    edges = np.append(times, times[-1] + window.step)
    axes.pcolormesh(edges, np.arange(len(inside) + 1), np.where(inside > 1e-9, inside, np.nan), cmap="Oranges",
                    vmin=-0.3 * float(inside.max() or 1))  # fmt: skip
    axes.set(xlim=(window.start, window.end), ylim=(0, len(inside)), yticks=range(1, len(inside) + 1))
    axes.set_yticklabels([_bound(series.labels["le"]) for series in ordered[:used]])
    axes.tick_params(colors=theme.FAINT, length=0, labelsize=8)
    axes.grid(color=theme.GRID, lw=0.5, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda t, _: time.strftime("%H:%M:%S", time.gmtime(t))))
    for side in axes.spines.values():
        side.set_visible(False)


def _bound(le: str) -> str:
    return "∞" if le == "+Inf" else theme.written(float(le), "s")
