"""Asks a Prometheus what Grafana would ask it for a panel, for tests and pictures. `grafana` fills the variables in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.dashboards.grafana import Window, chosen, filled
from tools.monitoring.query import Labels, Prometheus, Series

_LABEL: Final = re.compile(r"{{\s*(\w+)\s*}}")


@dataclass(frozen=True)
class Answer:
    """What a target of a panel got: its letter, its series, and the name of each in the legend."""

    letter: str
    series: tuple[Series, ...]
    names: tuple[str, ...]


def ask(
    server: Prometheus, board: Mapping[str, Any], panel: Mapping[str, Any], window: Window, **choice: str
) -> list[Answer]:
    """The answers to a panel's queries; `choice` are values of the dashboard's variables. Raises QueryError."""
    values = chosen(board, choice)
    return [_answer(server, target, filled(target["expr"], values, window), window) for target in panel["targets"]]


def _answer(server: Prometheus, target: Mapping[str, Any], query: str, window: Window) -> Answer:
    if target.get("instant"):
        found = server.instant(query, at=window.end)
    else:
        found = server.range(query, window.start, window.end, window.step)
    names = tuple(legend(str(target.get("legendFormat", "")), series.labels) for series in found)
    return Answer(target["refId"], tuple(found), names)


def changes(server: Prometheus, board: Mapping[str, Any], window: Window, **choice: str) -> dict[float, str]:
    """The dashboard's annotations: times (Unix seconds) and their texts."""
    values = chosen(board, choice)
    found: dict[float, str] = {}
    for annotation in board["annotations"]["list"]:
        if "expr" in annotation:
            query = filled(annotation["expr"], values, window)
            for series in server.range(query, window.start, window.end, window.step):
                found |= {time: legend(annotation["textFormat"], series.labels) for time, _ in series.points}
    return found


def legend(text: str, labels: Labels) -> str:
    """A series' name: the pattern with its labels; all of them for Grafana's automatic one."""
    if text in ("", "__auto"):
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()) if name != "__name__")
    return _LABEL.sub(lambda match: labels.get(match[1], ""), text).strip()
