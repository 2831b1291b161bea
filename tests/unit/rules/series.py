"""Series for promtool, one value a minute: `[1] * 10 + GONE` is ten minutes of a target or an object, and its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Value = float | str
Values = Sequence[Value]

GAP: Final = "_"
"""No sample: nobody scraped."""
GONE: Final[Values] = ["stale"]
"""What Prometheus writes when a series is missing from the page, or the target from the discovery."""

DEMO: Final = {"dsd_namespace": "team-a", "dsd_name": "demo"}
MODEL: Final = {**DEMO, "model_name": "llama"}


@dataclass(frozen=True)
class Series:
    """One series as promtool's `input_series`."""

    name: str
    labels: dict[str, str]
    values: Values

    def dump(self) -> dict[str, str]:
        """For the test file."""
        labels = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        return {"series": f"{self.name}{{{labels}}}", "values": " ".join(map(str, self.values))}


def condition(
    kind: str, status: str, reason: str, values: Values, operator: str = "operator-1", name: str = "demo"
) -> Series:
    """A condition as the operator shows it, with the labels that a scrape adds."""
    own = {"dsd_namespace": "team-a", "dsd_name": name, "type": kind, "status": status, "reason": reason}
    return Series("dsd_operator_condition", {**own, **_operator(operator)}, values)


def operator(metric: str, values: Values, pod: str = "operator-1", **labels: str) -> Series:
    """A series of the operator."""
    return Series(metric, {**labels, **_operator(pod)}, values)


def engine(metric: str, values: Values, pod: str = "demo-1", **labels: str) -> Series:
    """A series of an engine, with the labels that the PodMonitor's relabelings add."""
    target = {"job": "team-a/demo", "instance": f"{pod}:8000", "namespace": "team-a", "pod": pod}
    return Series(metric, {**MODEL, "engine": "0", **labels, **target}, values)


def plugin(values: Values, pod: str = "demo-1", mode: str = "on") -> Series:
    """The series that an engine has for as long as it is scraped."""
    return engine("dsd_plugin_info", values, pod, mode=mode)


def counter(*slopes: tuple[float, int]) -> Values:
    """A counter from 0 on, growing by so much a minute for so many minutes, piece by piece."""
    values: list[Value] = []
    at = 0.0
    for slope, minutes in slopes:
        for _ in range(minutes):
            values.append(round(at, 3))
            at += slope
    return values


def alternating(minutes: int, *values: Value) -> Values:
    """These values in turn."""
    return [values[minute % len(values)] for minute in range(minutes)]


def _operator(pod: str) -> dict[str, str]:
    return {"job": "dsd-operator", "instance": f"{pod}:8080", "namespace": "dsd-system", "pod": pod}


def until(values: Values, minutes: int) -> Values:
    """The first minutes of them, then gone."""
    return [*values[:minutes], *GONE]


def later(values: Values, minutes: int) -> Values:
    """The same, beginning so many minutes later."""
    return [*[GAP] * minutes, *values]
