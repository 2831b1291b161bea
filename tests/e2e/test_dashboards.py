"""Every query of every dashboard has data on a real cluster: operator and engine under load, scraped as documented."""

import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime.schedule import Ranges, from_triples
from tests.e2e.fleet import NAMESPACE
from tools.cluster import api
from tools.cluster.versions import PROMETHEUS
from tools.dashboards import grafana
from tools.dashboards.answers import Answer, ask, changes
from tools.dashboards.grafana import Window
from tools.monitoring.query import Prometheus
from tools.monitoring.scrape import documented
from tools.monitoring.server import running, scraping
from tools.testbed.engine import pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.load import Load
from tools.testbed.manifests import MAX_NUM_SEQS
from tools.testbed.waiting import wait_for
from tools.testbed.workload import prompts

pytestmark = pytest.mark.e2e

RATE_SECONDS: Final = 10
SHARES: Final = ("Acceptance", "Acceptance by K", "Acceptance by position", "Steps by K", "KV cache", "Ready pods")

MAY_BE_EMPTY: Final = {
    "dsd-deployment: Why it is not Ready": "it is Ready",
    "dsd-fleet: Schedule not applied": "every schedule is applied",
    "dsd-operator: Errors": "no pass fails",
    "dsd-operator: API calls that failed": "the API server refuses nothing",
    "dsd-operator: Conditions that are not True": "every resource is as its spec says",
}
"""Panels without data where all is well, and why. Their numbers are checked with series made by hand."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that has found the operator and the engine by the documented configuration."""
    config = scraping(documented(api.full_node_kubeconfig()))
    with running(tmp_path, config, program=api.program(PROMETHEUS.name)) as server:
        jobs = {"dsd-operator", "dsd-engines"}
        wait_for("both jobs to be up", server.targets, lambda t: jobs <= healthy(t), CHANGE_TIMEOUT)
        yield server


def healthy(targets: list[dict[str, Any]]) -> set[str]:
    """The jobs with a target that answers."""
    return {target["labels"]["job"] for target in targets if target["health"] == "up"}


def test_every_query_has_data(shared: Handle, server: Prometheus) -> None:
    started = time.time()
    swapped: list[Ranges] = [from_triples([(1, MAX_NUM_SEQS, k)]) for k in (0, 3)]
    with Load([pod_url(shared.pod()["status"]["podIP"])], prompts(8), 3, 48):
        for schedule in swapped:
            shared.set_schedule(schedule)
            shared.wait_applied(schedule)
            k = schedule[0].num_speculative_tokens
            wait_for(f"steps of K={k}", partial(priced, server, shared, k), lambda seconds: seconds > 0, CHANGE_TIMEOUT)
        wait_for(
            "every panel to have data",
            lambda: without_data(server, shared, started),
            lambda missing: missing <= set(MAY_BE_EMPTY),
            CHANGE_TIMEOUT,
            1,
        )
        assert wrong(server, shared, started) == {}
        marked = set(changes(server, grafana.load("dsd-deployment"), window(started, 1), **choice(shared)).values())
    assert len(marked) >= 1


def priced(server: Prometheus, shared: Handle, k: int) -> float:
    """Seconds that steps of this K at the load's concurrency have taken in the last minute, as far as it is known."""
    series = f'dsd_step_seconds_total{{dsd_name="{shared.name}", k="{k}", concurrency="4"}}'
    return sum(found.value for found in server.instant(f"increase({series}[1m])"))


def window(started: float, step: float = 2) -> Window:
    """From the beginning of the test until now, on whole seconds."""
    return Window(math.floor(started), math.floor(time.time()), step, RATE_SECONDS)


def choice(shared: Handle) -> dict[str, str]:
    """The variables as a user sets them."""
    return {"namespace": NAMESPACE, "deployment": shared.name}


def asked(server: Prometheus, shared: Handle, started: float) -> Iterator[tuple[str, dict[str, Any], list[Answer]]]:
    """Every panel with its answers; Prometheus refuses a query that is no valid PromQL."""
    view = window(started)
    for name in grafana.names():
        board = grafana.load(name)
        for panel in grafana.panels(board):
            yield f"{name}: {panel['title']}", panel, ask(server, board, panel, view, **choice(shared))


def without_data(server: Prometheus, shared: Handle, started: float) -> set[str]:
    """Panels with a query that no series answers, or nothing but NaN."""
    return {
        where
        for where, _, answers in asked(server, shared, started)
        if not all(any(v == v for s in answer.series for _, v in s.points) for answer in answers)
    }


def wrong(server: Prometheus, shared: Handle, started: float) -> dict[str, float]:
    """Values that cannot be: infinite ones anywhere, shares outside of 0 to 1."""
    found: dict[str, float] = {}
    for where, panel, answers in asked(server, shared, started):
        values = [v for answer in answers for s in answer.series for _, v in s.points if not math.isnan(v)]
        share = panel["title"] in SHARES and panel["fieldConfig"]["defaults"]["unit"] == "percentunit"
        impossible = [v for v in values if math.isinf(v) or (share and not 0 <= v <= 1 + 1e-9)]
        found |= {where: impossible[0]} if impossible else {}
    return found


def test_the_chart_ships_them_for_the_sidecar(installation: Installation) -> None:
    found = installation.kube.list("ConfigMap", installation.namespace, "grafana_dashboard=1")
    files = {name: text for config_map in found for name, text in config_map["data"].items()}
    assert files == {f"{name}.json": (grafana.FOLDER / f"{name}.json").read_text() for name in grafana.names()}
