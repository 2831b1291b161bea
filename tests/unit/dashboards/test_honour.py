"""The panels show the same whether a scrape honours labels or not, and when two operators tell of one resource."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from dsd_operator.metrics import Metrics
from tests.unit.dashboards.boards import BOARDS
from tests.unit.monitoring.exposition import showing
from tools.cluster.waiting import poll
from tools.dashboards import grafana
from tools.dashboards.answers import ask
from tools.dashboards.grafana import Window
from tools.monitoring.query import Prometheus
from tools.monitoring.server import running, scraping, static

pytestmark = pytest.mark.integration  # Prometheus is fetched once

TARGETS: Final = {"namespace": "monitoring-of-ours", "pod": "some-pod", "service": "some-service"}
"""Labels that a scrape adds; each would turn a label of ours with the same name into `exported_…`."""

ENGINE: Final = """\
dsd_plugin_info{model_name="m",engine="0",version="1",vllm_version="2",method="ngram",runner="V1",mode="on"} 1
dsd_schedule_revision_info{model_name="m",engine="0",revision="1",hash="h",source="http"} 1
dsd_num_speculative_tokens{model_name="m",engine="0"} 3
"""


def operators_page() -> str:
    """What an operator shows that takes care of two resources of one name."""
    metrics = Metrics("1")
    pods = {"ready": "2/3", "schedule": {"podsTotal": 3, "podsApplied": 2, "podsUnknown": 1}}
    for namespace, ready in (("a", "True"), ("b", "False")):
        conditions = [{"type": "Ready", "status": ready, "reason": "Why"}]
        metrics.set_status(namespace, "llama", {"conditions": conditions, **pods})
    return metrics.render()[0].decode()


@pytest.fixture(scope="module", params=[False, True], ids=["labels-of-the-target", "honor-labels"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes two operators (a new one takes over) and an engine."""
    with ExitStack() as stack:
        operators = [stack.enter_context(showing(operators_page())) for _ in range(2)]
        engine = stack.enter_context(showing(ENGINE))
        resource = {"dsd_namespace": "a", "dsd_name": "llama"}
        jobs: list[dict[str, Any]] = [
            static("operator", *operators, labels=TARGETS), static("engines", engine, labels=TARGETS | resource),
        ]  # fmt: skip
        honouring = [{**job, "honor_labels": request.param} for job in jobs]
        server = stack.enter_context(running(tmp_path_factory.mktemp("prometheus"), scraping(honouring)))
        assert poll(lambda: len(server.instant("up == 1")) == 3, 60)
        yield server


def shown(server: Prometheus, title: str, kind: str, **choice: str) -> list[dict[str, float]]:
    """The latest values of a panel of the fleet, by the resource's labels."""
    (now,) = (series.points[0][0] for series in server.instant("time()"))
    (panel,) = (p for p in grafana.panels(BOARDS["dsd-fleet"]) if (p["title"], p["type"]) == (title, kind))
    answers = ask(server, BOARDS["dsd-fleet"], panel, Window(now, now, 1, 10), **choice)
    labels = ("dsd_namespace", "dsd_name")
    return [{"/".join(s.labels.get(x, "") for x in labels): s.value for s in a.series} for a in answers]


def test_each_resource_is_counted_once_under_its_own_namespace(server: Prometheus) -> None:
    assert shown(server, "DSDDeployments", "stat") == [{"/": 2}]
    assert shown(server, "Not ready", "stat") == [{"/": 1}]
    table = shown(server, "DSDDeployments", "table")
    assert table[:4] == [{"a/llama": 1, "b/llama": 1}, {"a/llama": 3, "b/llama": 3}, {"a/llama": 2, "b/llama": 2},
                         {"a/llama": 1, "b/llama": 1}]  # fmt: skip
    assert shown(server, "Pods", "timeseries") == [{"/": 6}, {"/": 4}]
    assert shown(server, "Schedules in force", "table") == [{"a/llama": 1}]


def test_the_variable_namespace_means_that_of_the_resource(server: Prometheus) -> None:
    assert shown(server, "DSDDeployments", "stat", namespace="b") == [{"/": 1}]
    assert shown(server, "DSDDeployments", "stat", namespace="monitoring-of-ours") == [{}]
