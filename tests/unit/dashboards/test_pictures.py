"""The pictures: tables are transformed and values written as Grafana does it, and every kind of panel is drawn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from matplotlib.image import imread

from tests.unit.dashboards import by_hand
from tests.unit.dashboards.boards import BOARDS
from tools.dashboards import grafana
from tools.dashboards.answers import Answer
from tools.dashboards.grafana import Window
from tools.dashboards.preview import page, theme
from tools.dashboards.preview.frames import Cell, frames, transformed
from tools.monitoring.query import Prometheus, Series
from tools.monitoring.server import history, running, scraping


def answer(letter: str, *rows: dict[str, str], value: float = 1) -> Answer:
    return Answer(letter, tuple(Series(row, ((0, value + n),)) for n, row in enumerate(rows)), ("",) * len(rows))


def steps_of(name: str, title: str) -> list[dict[str, object]]:
    (found,) = (p["transformations"] for p in grafana.panels(BOARDS[name])
                if p["title"] == title and p.get("transformations"))  # fmt: skip
    return list(found)


def test_gains_become_a_matrix_in_order_of_numbers() -> None:
    cells = [{"k": k, "concurrency": c} for k, c in (("10", "16"), ("2", "4"), ("2", "16"), ("10", "4"))]
    (frame,) = transformed(
        frames([answer("A", *cells)]), steps_of("dsd-deployment", "Gain over K=0 by K and concurrency")
    )
    assert frame.columns == ("Requests", "K=2", "K=10")
    rows: list[dict[str, Cell]] = [dict(row) for row in frame.rows]
    assert rows == [
        {"Requests": 4, "K=2": 2, "K=10": 4},
        {"Requests": 16, "K=2": 3, "K=10": 1},
    ]


def test_answers_about_one_resource_become_one_line() -> None:
    one, two = {"dsd_namespace": "a", "dsd_name": "x"}, {"dsd_namespace": "a", "dsd_name": "y"}
    ready = [{**who, "status": "True", "reason": "Ready"} for who in (one, two)]
    answers = [answer("A", *ready), answer("B", one, two, value=3), *(answer(x, one, value=7) for x in "CDEFG")]
    (frame,) = transformed(frames(answers), steps_of("dsd-fleet", "DSDDeployments"))
    assert frame.columns == ("Namespace", "Name", "Ready", "Reason", "Pods wanted", "Pods ready", "Pods out of sync",
                             "Goodput", "Acceptance", "Cost")  # fmt: skip
    assert [(row["Name"], row["Pods wanted"], row.get("Goodput")) for row in frame.rows] == [
        ("x", 3, 7),
        ("y", 4, None),
    ]


def test_the_schedule_is_sorted_by_batch_size() -> None:
    edges = [{"batch": "1", "start": "1"}, {"batch": "5", "start": "5"}, {"batch": "64", "end": "64"}]
    title = "Tokens per second by K and concurrency, and the schedule"
    _, line = transformed(frames([answer("A"), answer("B", *reversed(edges))]), steps_of("dsd-deployment", title))
    assert [(row["batch"], row["Value #B"]) for row in line.rows] == [(1, 3), (5, 2), (64, 1)]


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.6249, "percentunit", None, "62.5%"),
        (0.6249, "percentunit", 0, "62%"),
        (0.0123, "s", None, "12.3 ms"),
        (90, "s", None, "1.5 min"),
        (1234, "count:tok/s", None, "1.23 K tok/s"),
        (0, "ops", None, "0 ops/s"),
        (4.5, "short", None, "4.5"),
        (float("nan"), "short", None, "no data"),
    ],
)
def test_values_are_written_with_their_units(value: float, unit: str, decimals: int | None, text: str) -> None:
    assert theme.written(value, unit, decimals) == text


WINDOW: Final = Window(by_hand.START + 600, by_hand.END, 60, 60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with the hour made by hand."""
    folder = tmp_path_factory.mktemp("prometheus")
    history(folder, by_hand.history())
    with running(folder, scraping([])) as server:
        yield server


@pytest.mark.integration  # Prometheus is fetched once
@pytest.mark.parametrize("name", BOARDS)
def test_every_dashboard_is_drawn_on_its_own_grid(server: Prometheus, name: str, tmp_path: Path) -> None:
    page.draw(server, name, WINDOW, tmp_path / "board.png")
    height, width, _ = imread(tmp_path / "board.png").shape
    lowest = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in BOARDS[name]["panels"])
    assert height / width == pytest.approx((lowest * 40 + 104) / 1680, rel=0.01)
