"""Tables as Grafana's transformations make them from answers. Those that the dashboards use, and no others."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools.dashboards.answers import Answer

Cell = str | float | None


@dataclass(frozen=True)
class Frame:
    """Columns in order, and rows."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Cell], ...]


def frames(answers: Sequence[Answer]) -> list[Frame]:
    """Each answer as the table that Grafana makes of it: its labels, and its value at the end."""
    found = []
    for answer in answers:
        name = "Value" if len(answers) == 1 else f"Value #{answer.letter}"
        labels = sorted({label for series in answer.series for label in series.labels if label != "__name__"})
        rows = [dict[str, Cell](series.labels) | {"Time": 0.0, name: series.value} for series in answer.series]
        found.append(Frame(("Time", *labels, name), tuple(rows)))
    return found


def transformed(found: list[Frame], steps: Sequence[Mapping[str, Any]]) -> list[Frame]:
    """The tables after a panel's transformations. Raises KeyError for one that is not known here."""
    for step in steps:
        found = _STEPS[step["id"]](found, step["options"])
    return found


def _merge(found: list[Frame], _: Mapping[str, Any]) -> list[Frame]:
    """One table: rows that agree in every column that both have become one."""
    columns = tuple(dict.fromkeys(column for frame in found for column in frame.columns))
    merged: list[dict[str, Cell]] = []
    for row in (row for frame in found for row in frame.rows):
        same = next((m for m in merged if all(m[c] == row[c] for c in m.keys() & row.keys())), None)
        if same is None:
            merged.append(dict(row))
        else:
            same.update(row)
    return [Frame(columns, tuple(merged))]


def _organize(found: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    hidden, order, names = options["excludeByName"], options["indexByName"], options["renameByName"]

    def organized(frame: Frame) -> Frame:
        kept = [column for column in frame.columns if not hidden.get(column)]
        kept.sort(key=lambda column: order.get(column, len(order)))
        renamed = {column: names.get(column, column) for column in kept}
        rows = tuple({renamed[c]: row.get(c) for c in kept} for row in frame.rows)
        return Frame(tuple(renamed.values()), rows)

    return [organized(frame) for frame in found]


def _convert(found: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    targets = {conversion["targetField"] for conversion in options["conversions"]}
    return [
        Frame(
            frame.columns, tuple({c: _number(v) if c in targets else v for c, v in row.items()} for row in frame.rows)
        )
        for frame in found
    ]


def _number(value: Cell) -> Cell:
    return float(value) if isinstance(value, str) else value


def _sort(found: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    (by,) = (sort["field"] for sort in options["sort"])

    def ordered(frame: Frame) -> Frame:
        if by not in frame.columns:
            return frame
        return Frame(frame.columns, tuple(sorted(frame.rows, key=lambda row: float(row[by] or 0))))

    return [ordered(frame) for frame in found]


def _matrix(found: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    across, down, value = options["columnField"], options["rowField"], options["valueField"]
    (frame,) = found
    corner = f"{down}\\{across}"
    columns = tuple(dict.fromkeys(_header(row[across]) for row in frame.rows))
    rows: dict[Cell, dict[str, Cell]] = {}
    for row in frame.rows:
        rows.setdefault(row[down], {corner: row[down]})[_header(row[across])] = row[value]
    return [Frame((corner, *columns), tuple(rows.values()))]


def _header(value: Cell) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rename(found: list[Frame], options: Mapping[str, Any]) -> list[Frame]:
    pattern, name = re.compile(options["regex"]), options["renamePattern"].replace("$", "\\")

    def renamed(frame: Frame) -> Frame:
        names = {column: pattern.sub(name, column) for column in frame.columns}
        return Frame(tuple(names.values()), tuple({names[c]: v for c, v in row.items()} for row in frame.rows))

    return [renamed(frame) for frame in found]


_STEPS: Final[Mapping[str, Callable[[list[Frame], Mapping[str, Any]], list[Frame]]]] = {
    "merge": _merge,
    "organize": _organize,
    "convertFieldType": _convert,
    "sortBy": _sort,
    "groupingToMatrix": _matrix,
    "renameByRegex": _rename,
}
