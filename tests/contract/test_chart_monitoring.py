"""ServiceMonitor and PrometheusRule of the chart: off unless wanted, rules to the letter, labels from three places."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart import CHART, Manifest, notes, rendered

KINDS = {"ServiceMonitor", "PrometheusRule"}
RULES = CHART / "rules" / "dsd.yaml"
RULES_ON = ("--set", "monitoring.rules.enabled=true")
MONITOR_ON = ("--set", "monitoring.serviceMonitor.enabled=true")


def _one(kind: str, *options: str) -> Manifest:
    (found,) = (m for m in rendered(*options) if m["kind"] == kind)
    return found


def _source() -> Any:
    return yaml.safe_load(RULES.read_text())


def test_nothing_of_another_operators_kinds_unless_wanted() -> None:
    assert not {m["kind"] for m in rendered()} & KINDS


@pytest.mark.parametrize(("options", "kinds"), [(RULES_ON, {"PrometheusRule"}), (MONITOR_ON, {"ServiceMonitor"})])
def test_each_is_switched_on_alone(options: tuple[str, str], kinds: set[str]) -> None:
    assert {m["kind"] for m in rendered(*options)} & KINDS == kinds


def test_the_rules_come_out_as_they_went_in() -> None:
    """Their braces are for Prometheus; Helm neither evaluates nor breaks on them."""
    made = _one("PrometheusRule", *RULES_ON)["spec"]
    assert made == _source()
    assert "{{ $labels.dsd_name }}" in str(made)


@pytest.mark.parametrize("base", ["https://runbooks.example/dsd", "https://runbooks.example/dsd/"])
def test_runbooks_lie_where_a_value_says(base: str) -> None:
    made = _one("PrometheusRule", *RULES_ON, "--set", f"monitoring.rules.runbookUrl={base}")["spec"]
    urls = [rule["annotations"]["runbook_url"] for g in made["groups"] for rule in g["rules"] if "alert" in rule]
    names = [rule["alert"] for group in _source()["groups"] for rule in group["rules"] if "alert" in rule]
    assert urls == [f"https://runbooks.example/dsd/{name}.md" for name in names]


@pytest.mark.parametrize(
    ("kind", "options", "part"),
    [("PrometheusRule", RULES_ON, "rules"), ("ServiceMonitor", MONITOR_ON, "serviceMonitor")],
)
def test_labels_come_from_the_chart_from_all_monitoring_and_from_the_part(
    kind: str, options: tuple[str, ...], part: str
) -> None:
    sets = ("monitoring.labels.release=a", "monitoring.labels.team=b", f"monitoring.{part}.labels.release=c")
    own = _one(kind, *options)["metadata"]["labels"]
    made = _one(kind, *options, *(word for value in sets for word in ("--set", value)))["metadata"]["labels"]
    assert own["app.kubernetes.io/name"] == "dsd-operator"
    assert made == {**own, "release": "c", "team": "b"}


def test_the_service_monitor_selects_the_service_and_its_port() -> None:
    monitor, service = _one("ServiceMonitor", *MONITOR_ON), _one("Service", *MONITOR_ON)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [service["metadata"]["namespace"]]}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint == {"port": service["spec"]["ports"][0]["name"], "path": "/metrics", "honorLabels": False}
    assert monitor["spec"]["jobLabel"] in service["metadata"]["labels"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("monitoring.serviceMonitor.enabled=true", "--set monitoring.labels.release="),
        ("monitoring.rules.enabled=true", "--set monitoring.serviceMonitor.enabled=true"),
        ("monitoring.rules.enabled=true,crds.install=false", "--set monitoring.rules.enabled=false"),
    ],
)
def test_the_notes_say_what_is_missing(values: str, words: str, tmp_path: Path) -> None:
    assert words in notes(tmp_path, "--set", values)
    well = "monitoring.rules.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.labels.release=a"
    assert "--set monitoring." not in notes(tmp_path / "well", "--set", well)
