"""The tables of a result file, as Markdown: whatever rows a benchmark writes, by the kinds of row it knows. Pure.

A figure is a value of a row that has a minimum and a maximum (`results.spread`, `results.extent`). Rows with a
workload, a concurrency and a figure become one matrix; other rows with figures a list; a `table` is a schedule;
`functions` are a profile. Lists of samples stay in the file.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Row = dict[str, Any]


def tables(data: Sequence[Row]) -> list[str]:
    """The lines of all tables of a result's `data`."""
    lines: list[str] = []
    for kind, render in KINDS:
        found = [row for row in data if kind(row)]
        lines += render(found) if found else []
    return lines


def is_figure(value: Any) -> bool:
    """Whether a value of a row is a figure with its spread."""
    return isinstance(value, dict) and {"min", "max"} <= value.keys()


def figures_of(row: Row) -> list[str]:
    """The names of a row's figures."""
    return [name for name, value in row.items() if is_figure(value)]


def is_cell(row: Row) -> bool:
    """A row of a sweep."""
    return {"workload", "concurrency"} <= row.keys() and bool(figures_of(row))


def middle(figure: dict[str, float]) -> float:
    """The median, under either name."""
    return figure["p50"] if "p50" in figure else figure["median"]


def words(name: str) -> str:
    """A key as text."""
    return name.replace("_", " ")


def number(value: float) -> str:
    """A value with four significant digits at most, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 1 else f"{value:.3f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, with an empty line after it."""
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines, ""]


def schedules(rows: Sequence[Row]) -> list[str]:
    """The schedules that were used, one line each."""
    lines = []
    for row in rows:
        ranges = ", ".join(f"{start} to {end}: K={k}" for start, end, k in row["table"])
        lines.append(f"Schedule{' for ' + row['workload'] if 'workload' in row else ''}: {ranges}.\n")
    return lines


def matrices(rows: Sequence[Row]) -> list[str]:
    """For each workload and figure a line per configuration or comparison and a column per concurrency."""
    lines: list[str] = []
    groups = dict.fromkeys((row["workload"], name) for row in rows for name in figures_of(row))
    for workload, name in groups:
        found = [row for row in rows if row["workload"] == workload and name in row]
        lines += _matrix(f"{workload}: {words(name)}", name, found)
    return lines


def _matrix(title: str, name: str, rows: Sequence[Row]) -> list[str]:
    columns = sorted({row["concurrency"] for row in rows})
    cells: dict[str, dict[int, str]] = {}
    for row in rows:
        label = str(row.get("configuration") or row["comparison"])
        cells.setdefault(label, {})[row["concurrency"]] = _cell(row[name], with_spread="comparison" in row)
    body = [[label, *(by_column.get(c, "") for c in columns)] for label, by_column in cells.items()]
    return markdown([title, *map(str, columns)], body)


def _cell(figure: dict[str, float], with_spread: bool) -> str:
    if not with_spread:
        return number(middle(figure))
    return f"{number(middle(figure))} ({number(figure['min'])} to {number(figure['max'])})"


def spreads(rows: Sequence[Row]) -> list[str]:
    """Other rows with figures, those of the same kind in one table."""
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Row]] = {}
    for row in rows:
        plain = tuple(key for key, value in row.items() if isinstance(value, str | int | float))
        for name in figures_of(row):
            groups.setdefault((name, plain, tuple(row[name])), []).append(row)
    lines: list[str] = []
    for (name, plain, parts), found in groups.items():
        head = [*map(words, plain), *(f"{words(name)}, {NAMES.get(part, part)}" for part in parts)]
        lines += markdown(head, [[_text(row[key]) for key in (*plain,)] + _values(row[name], parts) for row in found])
    return lines


def _values(figure: dict[str, float], parts: Sequence[str]) -> list[str]:
    return [number(figure[part]) for part in parts]


def _text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def profiles(rows: Sequence[Row]) -> list[str]:
    """Where the time goes, as a profiler saw it: the hottest functions of each configuration."""
    lines: list[str] = []
    for row in rows:
        where = ", ".join(f"{key} {row[key]}" for key in ("workload", "concurrency") if key in row)
        for name, functions in row["functions"].items():
            title = f"Profile ({row['explains']}): {name}{', ' + where if where else ''}"
            body = [[f["function"], number(f["milliseconds"]), number(f["calls"])] for f in functions]
            lines += markdown([title, "own ms", "calls"], body)
    return lines


NAMES = {"min": "minimum", "p50": "median", "p95": "95th percentile", "max": "maximum"}

KINDS: tuple[tuple[Callable[[Row], bool], Callable[[Sequence[Row]], list[str]]], ...] = (
    (lambda row: "table" in row, schedules),
    (is_cell, matrices),
    (lambda row: bool(figures_of(row)) and not is_cell(row), spreads),
    (lambda row: "functions" in row, profiles),
)
