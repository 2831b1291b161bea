"""Single numbers with their course behind them, and bars side by side."""

import numpy as np

from tools.dashboards.preview import theme
from tools.dashboards.preview.drawing import Drawing


def stat(drawing: Drawing) -> None:
    """One number, coloured by its thresholds."""
    axes, field = drawing.axes, drawing.field
    axes.axis("off")
    (answer, *_), (name, *_) = drawing.answers, drawing.answers[0].names
    series = answer.series[0]
    colour = theme.by_threshold(series.value, field["thresholds"]["steps"])
    if drawing.panel["options"]["textMode"] == "name":
        text = name
    else:
        text = theme.written(series.value, field["unit"], field.get("decimals"))
        _course(drawing, colour)
    axes.text(0.5, 0.58, text, color=colour, size=22 if len(text) < 9 else 17, weight="bold", ha="center", va="center",
              transform=axes.transAxes)  # fmt: skip


def _course(drawing: Drawing, colour: str) -> None:
    times, values = (np.array(part) for part in zip(*drawing.answers[0].series[0].points, strict=True))
    if len(values) < 2 or np.all(np.isnan(values)):
        return
    low, high = np.nanmin(values), np.nanmax(values)
    room = (high - low) or 1.0
    drawing.axes.set(xlim=(drawing.window.start, drawing.window.end), ylim=(low - 0.1 * room, high + 1.6 * room))
    drawing.axes.plot(times, values, color=colour, lw=1, alpha=0.8)
    drawing.axes.fill_between(times, values, low - 0.1 * room, color=colour, alpha=0.18, lw=0)


def bars(drawing: Drawing) -> None:
    """Horizontal bars from 0 to 1."""
    axes, field = drawing.axes, drawing.field
    (answer,) = drawing.answers
    found = sorted(zip(answer.names, answer.series, strict=True), key=lambda pair: pair[0])
    axes.set(xlim=(-0.12, 1.16), ylim=(len(found) - 0.4, -0.6))
    axes.axis("off")
    for row, (name, series) in enumerate(found):
        colour = theme.by_threshold(series.value, field["thresholds"]["steps"])
        axes.barh(row, 1, height=0.62, color=theme.GRID, lw=0)
        axes.barh(row, series.value, height=0.62, color=colour, lw=0, alpha=0.85)
        axes.text(-0.02, row, name, ha="right", va="center", size=9)
        axes.text(
            1.02, row, theme.written(series.value, field["unit"], 0), ha="left", va="center", color=colour, size=9
        )
