"""What the panels show, against series made by hand: one panel of each kind, and every formula that is ours.

A real Prometheus answers the queries just as they are checked in, with Grafana's variables filled in. The numbers that
it must give are worked out in `by_hand`.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.unit.dashboards import by_hand
from tests.unit.dashboards.boards import BOARDS, Json
from tools.dashboards import grafana
from tools.dashboards.answers import Answer, ask, changes
from tools.dashboards.grafana import Window
from tools.monitoring.query import Prometheus
from tools.monitoring.server import history, running, scraping

pytestmark = pytest.mark.integration  # Prometheus is fetched once

NOW: Final = Window(start=by_hand.START + 2400, end=by_hand.END, step=60, rate=60)
"""A time when pod b has long made room for pod c."""

ALL: Final = Window(start=by_hand.START, end=by_hand.END, step=15, rate=60)
CHOICE: Final = {"namespace": "chat", "deployment": "llama"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with nothing but the hour made by hand."""
    folder = tmp_path_factory.mktemp("prometheus")
    history(folder, by_hand.history())
    with running(folder, scraping([])) as server:
        yield server


def panel(board: str, title: str, kind: str) -> Json:
    (found,) = (p for p in grafana.panels(BOARDS[board]) if (p["title"], p["type"]) == (title, kind))
    return found


def answers(server: Prometheus, board: str, title: str, kind: str, window: Window = NOW, **choice: str) -> list[Answer]:
    return ask(server, BOARDS[board], panel(board, title, kind), window, **choice)


def latest(found: list[Answer]) -> dict[str, float]:
    """The last value of each series by its name in the legend."""
    return {name: series.value for a in found for name, series in zip(a.names, a.series, strict=True)}


def cells(answer: Answer, *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(s.labels[label] for label in labels): s.value for s in answer.series}


def near(expected: dict[str, float]) -> object:
    return pytest.approx(expected, rel=1e-6, abs=1e-9)


def value(server: Prometheus, board: str, title: str, **choice: str) -> float:
    """What a panel with one number shows at the end."""
    (answer,) = answers(server, board, title, "stat", NOW, **choice)
    (series,) = answer.series
    return series.value


@pytest.mark.parametrize(
    ("board", "title", "expected"),
    [
        ("dsd-deployment", "Engines", 2),
        ("dsd-deployment", "Goodput", 2 * 38.4),
        ("dsd-deployment", "Acceptance", 25 / 40),
        ("dsd-deployment", "Acceptance length", 1 + 25 / 20),
        ("dsd-deployment", "Cost of speculation", 15 / 38.4),
        ("dsd-deployment", "Gain over K=0", (2.4 / 10 + 30 / 20) / (0.55 / 0.75) - 1),
        ("dsd-deployment", "Changes of K", 0.1),
        ("dsd-deployment", "Schedules in force", 1),
        ("dsd-fleet", "DSDDeployments", 2),
        ("dsd-fleet", "Not ready", 1),
        ("dsd-fleet", "Ready pods", 2 / 3),
        ("dsd-fleet", "Schedules in force", 2),
        ("dsd-fleet", "Pods out of sync", 2),
        ("dsd-fleet", "Goodput", 2 * 38.4),
        ("dsd-fleet", "Cost of speculation", 15 / 38.4),
        ("dsd-operator", "Passes that failed", 0.1),
        ("dsd-operator", "Change to acknowledged, p95", 0.2),
    ],
)
def test_single_values(server: Prometheus, board: str, title: str, expected: float) -> None:
    assert value(server, board, title) == pytest.approx(expected, rel=1e-6)


def test_time_series_by_k(server: Prometheus) -> None:
    means = latest(answers(server, "dsd-deployment", "Step time by K", "timeseries"))
    assert means == near({"K=0": 0.2 / 1.5, "K=2": 0.55 / 4.5})
    slowest = latest(answers(server, "dsd-deployment", "Step time by K, p95", "timeseries"))
    assert slowest == near({"K=0": 0.05 + 0.05 * 0.95, "K=2": 0.1 + 0.15 * 0.9})
    emitted = latest(answers(server, "dsd-deployment", "Emitted tokens in a step", "timeseries"))
    assert emitted == near({"K=0": 6 / 3, "K=2": 32.4 / 6})
    share = latest(answers(server, "dsd-deployment", "Acceptance by K", "timeseries"))
    assert share == near({"K=2": 25 / 40})  # K=0 drafts nothing: absent, not 0
    gain = latest(answers(server, "dsd-deployment", "Gain over K=0", "timeseries"))
    assert gain == near({"K=2": (2.4 / 10 + 30 / 20) / (0.55 / 0.75) - 1})


def test_stacked_time_series(server: Prometheus) -> None:
    found = answers(server, "dsd-deployment", "Steps by K", "timeseries")
    assert latest(found) == near({"K=0": 3 / 9, "K=2": 6 / 9})


def test_k_beside_concurrency_for_each_pod(server: Prometheus) -> None:
    found = latest(answers(server, "dsd-deployment", "K in use against concurrency", "timeseries"))
    pods = ("llama-a 10.0.0.1:8000 engine 0", "llama-c 10.0.0.3:8000 engine 0")
    assert found == near({f"{what} {pod}": n for pod in pods for what, n in (("K", 2.0), ("requests", 3.0))})


def test_bars(server: Prometheus) -> None:
    found = latest(answers(server, "dsd-deployment", "Acceptance by position, now", "bargauge"))
    assert found == near({"0": 16 / 20, "1": 9 / 20})


def test_heat_map_and_the_schedule_on_it(server: Prometheus) -> None:
    title = "Tokens per second by K and concurrency, and the schedule"
    speed, schedule = answers(server, "dsd-deployment", title, "xychart")
    expected = {("0", "1"): 10, ("0", "4"): 20, ("2", "1"): 36, ("2", "4"): 45}
    assert cells(speed, "k", "concurrency") == pytest.approx(expected, rel=1e-6)
    assert cells(schedule, "batch") == {("1",): 2, ("4",): 2, ("5",): 0, ("64",): 0}


def test_coloured_table(server: Prometheus) -> None:
    (gain,) = answers(server, "dsd-deployment", "Gain over K=0 by K and concurrency", "table")
    assert cells(gain, "k", "concurrency") == pytest.approx({("2", "1"): 2.6, ("2", "4"): 1.25}, rel=1e-6)


def test_table_of_the_fleet(server: Prometheus) -> None:
    found = answers(server, "dsd-fleet", "DSDDeployments", "table")
    assert cells(found[0], "dsd_name", "status") == {("llama", "True"): 1, ("idle", "False"): 1}
    numbers = [cells(answer, "dsd_name") for answer in found[1:]]
    both = [{("llama",): n, ("idle",): n} for n in (3, 2, 1)]
    assert numbers[:3] == both
    assert [n["llama",] for n in numbers[3:]] == pytest.approx([2 * 38.4, 25 / 40, 15 / 38.4], rel=1e-6)


def test_state_of_one_resource_also_where_no_engine_serves(server: Prometheus) -> None:
    def shown(title: str, kind: str, deployment: str) -> list[Answer]:
        return answers(server, "dsd-deployment", title, kind, namespace="chat", deployment=deployment)

    why = ("type", "status", "reason")
    (idle,), (llama,) = (shown("Conditions", "table", name) for name in ("idle", "llama"))
    assert cells(idle, *why) == {("Ready", "False", "Why"): 1}
    assert cells(llama, *why) == {("Ready", "True", "Why"): 1}
    assert latest(shown("Why it is not Ready", "timeseries", "idle")) == {"False Why": 1}
    assert latest(shown("Why it is not Ready", "timeseries", "llama")) == {}
    assert latest(shown("Pods", "timeseries", "idle")) == {"wanted": 3, "ready": 2, "with the schedule": 2}


def test_histogram_over_time(server: Prometheus) -> None:
    found = answers(server, "dsd-operator", "Change to acknowledged, every change", "heatmap")
    assert latest(found) == near({"0.1": 0.12, "0.2": 0.48, "+Inf": 0.6})


def test_a_rate_survives_the_change_of_a_pod(server: Prometheus) -> None:
    """Not one point of the goodput is off by more than the window in which pod c has but a few samples."""
    (answer,) = answers(server, "dsd-fleet", "Goodput", "timeseries", ALL)
    (series,) = answer.series
    around = {t: v for t, v in series.points if t >= by_hand.START + 60}
    assert max(around.values()) < 3.01 * 38.4  # b and c in one window at most
    assert min(around.values()) > 0.99 * 38.4
    before_and_after = [v for t, v in around.items() if not 0 <= t - by_hand.SWITCH < 120]
    assert before_and_after == pytest.approx([2 * 38.4] * len(before_and_after), rel=1e-6)


def test_a_schedule_change_is_annotated_once(server: Prometheus) -> None:
    assert changes(server, BOARDS["dsd-deployment"], ALL, **CHOICE) == {by_hand.SWITCH: "hash2"}


def test_another_deployment_is_not_mixed_in(server: Prometheus) -> None:
    (answer,) = answers(server, "dsd-deployment", "Goodput", "stat", NOW, namespace="chat", deployment="other")
    assert answer.series == ()
    assert value(server, "dsd-fleet", "DSDDeployments", deployment="idle") == 1
