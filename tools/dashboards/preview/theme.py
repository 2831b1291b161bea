"""Colours and units of the pictures: Grafana's dark theme, and how it writes values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

PAGE: Final = "#111217"
PANEL: Final = "#181b1f"
BORDER: Final = "#25282d"
GRID: Final = "#2b2e34"
TEXT: Final = "#d5d6de"
FAINT: Final = "#8e9099"
PALETTE: Final = (
    "#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#37872d", "#8ab8ff", "#e0b400", "#fade2a",
)  # fmt: skip

_NAMED: Final = {
    "green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "blue": "#5794f2", "transparent": "none",
    "dark-red": "#c4162a", "semi-dark-red": "#e02f44", "super-light-yellow": "#8f8a5c", "semi-dark-green": "#56a64b",
    "dark-green": "#37872d", "text": TEXT,
}  # fmt: skip
_COUNTS: Final = ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"))
_TIMES: Final = ((60.0, 1 / 60, "min"), (1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs"))
_SUFFIX: Final = {"ops": " ops/s", "count:tok/s": " tok/s"}


def colour(name: str) -> str:
    """A colour of Grafana's by its name; others stand for themselves."""
    return _NAMED.get(name, name)


def by_threshold(value: float, steps: Sequence[Mapping[str, Any]]) -> str:
    """The colour that a value has by a panel's thresholds."""
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return colour(reached[-1]) if reached else TEXT


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """A value with its unit, as a panel shows it."""
    if math.isnan(value):
        return "no data"
    if unit == "percentunit":
        return f"{_digits(100 * value, decimals)}%"
    if unit == "s":
        return _time(value, decimals)
    for size, letter in _COUNTS:
        if unit != "none" and abs(value) >= size:
            return f"{_digits(value / size, decimals)}{letter}{_SUFFIX.get(unit, '')}"
    return f"{_digits(value, decimals)}{_SUFFIX.get(unit, '')}"


def _time(value: float, decimals: int | None) -> str:
    if value == 0:
        return "0 s"
    for least, factor, letters in _TIMES:
        if abs(value) >= least:
            return f"{_digits(value * factor, decimals)} {letters}"
    raise AssertionError(value)


def _enough(value: float) -> int:
    """Digits after the point that leave three that count."""
    if value == 0 or abs(value - round(value)) < 1e-9:
        return 0
    return max(0, 2 - math.floor(math.log10(abs(value)))) if abs(value) < 100 else 0


def _digits(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    text = f"{value:.{_enough(value)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
