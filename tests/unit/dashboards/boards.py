"""The checked-in dashboards, for the tests here: every panel and every query with the name to tell it by."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tools.dashboards import grafana

Json = dict[str, Any]
BOARDS: Final[dict[str, Json]] = {name: grafana.load(name) for name in grafana.names()}
SELECTOR: Final = re.compile(r"([A-Za-z_:][\w:]*)\{([^{}]*)\}")


@dataclass(frozen=True)
class Asked:
    """One query: of a panel, a variable or an annotation."""

    where: str
    expr: str


def panels() -> Iterator[tuple[str, Json]]:
    """Every panel with its name."""
    for name, board in BOARDS.items():
        for panel in grafana.panels(board):
            yield f"{name}: {panel['title']}", panel


def queries() -> Iterator[Asked]:
    """The queries of all panels and annotations."""
    for where, panel in panels():
        for target in panel["targets"]:
            yield Asked(f"{where}: {target['refId']}", target["expr"])
    for name, board in BOARDS.items():
        for annotation in board["annotations"]["list"]:
            if "expr" in annotation:
                yield Asked(f"{name}: {annotation['name']}", annotation["expr"])


def variables() -> Iterator[tuple[str, Json]]:
    """Every variable with the dashboard's name."""
    return ((name, variable) for name, board in BOARDS.items() for variable in board["templating"]["list"])


def named(asked: Iterator[Asked]) -> list[Any]:
    """For parametrize: the query, called by its place."""
    return [pytest.param(query, id=query.where) for query in asked]
