"""One test of an alert: series, and the minutes at which it fires or is silent. Becomes one test of promtool.

promtool compares labels and texts to the letter; the expected text is the rule's own with the values of the case in it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final

import yaml

from tests.unit.rules.series import Series
from tools.cluster.paths import REPOSITORY

RULES: Final = REPOSITORY / "charts" / "dsd-operator" / "rules" / "dsd.yaml"
_FOR_VALUE: Final = re.compile(r"{{ \$value [^}]*}}")

Rule = dict[str, Any]


class Kind(StrEnum):
    """What every alert is tested for."""

    FIRES = "fires"
    SILENT = "does not fire"
    STEADY = "does not flap"


@dataclass(frozen=True)
class Case:
    """Minutes count from the first sample. `value` is the alert's value as its text shows it."""

    alert: str
    kind: Kind
    why: str
    series: Sequence[Series]
    firing: Sequence[int] = ()
    quiet: Sequence[int] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    value: str = ""
    rule: int = 0
    """Which one of the rules of this name."""

    @property
    def title(self) -> str:
        """For promtool and pytest."""
        return f"{self.alert} {self.kind.value}: {self.why}"

    @property
    def fired(self) -> str:
        """The series that Prometheus makes of the alert while it fires."""
        return f'ALERTS{{alertname="{self.alert}", alertstate="firing"}}'

    def dump(self) -> dict[str, Any]:
        """For promtool's test file."""
        checks = [self._check(minute, [self._expected()]) for minute in self.firing if self.kind is Kind.FIRES]
        return {
            "name": self.title,
            "interval": "1m",
            "input_series": [series.dump() for series in self.series],
            "alert_rule_test": [*checks, *(self._check(minute, []) for minute in self.quiet)],
            "promql_expr_test": self._steadiness(),
        }

    def _check(self, minute: int, expected: list[dict[str, Any]]) -> dict[str, Any]:
        return {"eval_time": f"{minute}m", "alertname": self.alert, "exp_alerts": expected}

    def _expected(self) -> dict[str, Any]:
        rule = alerts()[self.alert][self.rule]
        texts = {name: self._filled(text) for name, text in rule["annotations"].items()}
        return {"exp_labels": {**rule["labels"], **self.labels}, "exp_annotations": texts}

    def _filled(self, text: str) -> str:
        for name, value in self.labels.items():
            text = text.replace(f"{{{{ $labels.{name} }}}}", value)
        return _FOR_VALUE.sub(self.value, text)

    def _steadiness(self) -> list[dict[str, Any]]:
        """From the first to the last minute of `firing` it fires in every one of them."""
        if self.kind is not Kind.STEADY:
            return []
        first, last = min(self.firing), max(self.firing)
        return [
            {
                "expr": f"max(count_over_time({self.fired}[{last - first}m]))",
                "eval_time": f"{last}m",
                "exp_samples": [{"labels": "{}", "value": last - first + 1}],
            }
        ]


@cache
def alerts() -> dict[str, list[Rule]]:
    """The alerts in the rules file by their names."""
    found: dict[str, list[Rule]] = {}
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                found.setdefault(rule["alert"], []).append(rule)
    return found
