"""promtool on the recording rules and alerts: each alert fires, does not fire, and does not flap."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dsd_operator.metrics import Metrics
from dsd_runtime.catalogue import FAMILIES
from tests.unit.rules import engine_cases, operator_cases
from tests.unit.rules.case import RULES, Case, Kind, Rule, alerts
from tools.cluster.paths import REPOSITORY
from tools.monitoring import programs

CASES: Final = (*engine_cases.CASES, *operator_cases.CASES)
ALL: Final = [rule for found in alerts().values() for rule in found]
ENDINGS: Final = ("_total", "_count", "_sum", "_bucket")

promtool = pytest.mark.integration  # promtool is fetched


def _promtool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [programs.promtool(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def _judge(folder: Path, cases: list[Case], rules: Path = RULES) -> "subprocess.CompletedProcess[str]":
    """What promtool says of these cases."""
    file = folder / "tests.yaml"
    content = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [case.dump() for case in cases]}
    file.write_text(yaml.safe_dump(content, sort_keys=False, width=10_000_000))
    return _promtool("test", "rules", file)


@promtool
@pytest.mark.parametrize("alert", alerts())
def test_alert(alert: str, tmp_path: Path) -> None:
    done = _judge(tmp_path, [case for case in CASES if case.alert == alert])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_is_tested_in_three_ways(alert: str) -> None:
    cases = [case for case in CASES if case.alert == alert]
    assert {case.kind for case in cases} == set(Kind)
    fired = {case.rule for case in cases if case.kind is Kind.FIRES}
    assert fired == set(range(len(alerts()[alert])))
    for case in cases:
        assert bool(case.firing) == (case.kind is not Kind.SILENT), case.title
        if case.kind is Kind.STEADY:
            assert max(case.firing) - min(case.firing) >= 30, case.title
        if case.kind is Kind.SILENT:
            assert len(case.quiet) >= 10, case.title


@promtool
@pytest.mark.parametrize(
    ("expression", "kind"),
    [("vector(0) > 1", Kind.FIRES), ("vector(0) > 1", Kind.STEADY), ("vector(1)", Kind.SILENT)],
)
def test_each_kind_of_case_finds_what_it_is_there_for(expression: str, kind: Kind, tmp_path: Path) -> None:
    """Alerts that never fire, and alerts that always do."""
    content = yaml.safe_load(RULES.read_text())
    for rule in (rule for group in content["groups"] for rule in group["rules"] if "alert" in rule):
        rule["expr"] = expression
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(content))
    cases = {case.alert: case for case in CASES if case.kind is kind}
    done = _judge(tmp_path, list(cases.values()), rules)
    said = (done.stdout + done.stderr).replace('\\"', '"')
    missed = [case for case in cases.values() if case.title not in said and f"({case.fired}[" not in said]
    assert [case.title for case in missed] == []


@promtool
def test_promtool_finds_nothing_to_complain_about() -> None:
    done = _promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_it_is_and_where_to_read_on(rule: Rule) -> None:
    assert re.fullmatch(r"DSD[A-Z][A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["for"]
    texts = rule["annotations"]
    assert set(texts) == {"summary", "description", "runbook_url"}
    assert texts["summary"].endswith(".")
    assert "{{" not in texts["summary"]
    assert texts["runbook_url"] == f"docs/runbooks/{rule['alert']}.md"


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    pages = {path.stem for path in (REPOSITORY / "docs" / "runbooks").glob("DSD*.md")}
    assert pages == set(alerts())


def _rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_rules_read_only_what_is_there() -> None:
    """A metric that nobody exports makes a rule that is silent for ever."""
    families = {family.name for family in Metrics("1").registry.collect()} | {family.name for family in FAMILIES}
    known = {f"{name}{ending}" for name in families for ending in ("", *ENDINGS)}
    known |= {rule["record"] for rule in _rules() if "record" in rule}
    for rule in _rules():
        used = set(re.findall(r"\b(?:deployment\w*:)?dsd_[a-z0-9_:]+(?=[\[{\s)])", rule["expr"]))
        used -= {"dsd_namespace", "dsd_name"}
        assert used, rule
        assert used <= known, rule


def test_recorded_series_are_named_by_level_metric_and_operation() -> None:
    for rule in (rule for rule in _rules() if "record" in rule):
        level, metric, operation = rule["record"].split(":")
        assert level.startswith("deployment")
        assert metric.startswith("dsd_")
        assert re.search(r"rate\d+[mhd]$", operation)
        for label in level.split("_")[1:]:
            assert f", {label}" in rule["expr"]


def test_no_label_of_ours_is_a_target_label() -> None:
    """So honorLabels makes no difference, and no label becomes `exported_…`."""
    target = {"job", "instance", "namespace", "pod", "container", "service", "endpoint", "node"}
    operator = Metrics("1")
    operator.engine_restarts("a", "b", 0)
    operator.set_status("a", "b", {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]})
    own = {label for family in operator.registry.collect() for sample in family.samples for label in sample.labels}
    assert {"dsd_namespace", "dsd_name", "type"} <= own
    engine = {"model_name", "engine"} | {label for family in FAMILIES for label in family.extra}
    assert not (own | engine) & target
