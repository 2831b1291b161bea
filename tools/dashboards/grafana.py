"""What Grafana does with a dashboard before it asks Prometheus: fills the variables in. For tests and pictures."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.cluster.paths import REPOSITORY

FOLDER: Final = REPOSITORY / "charts" / "dsd-operator" / "dashboards"
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class Window:
    """The times of a view: from `start` to `end` (Unix seconds), a point every `step`, rates over `rate` seconds."""

    start: float
    end: float
    step: float
    rate: float

    def variables(self) -> dict[str, str]:
        """Grafana's own variables."""
        whole = max(1, round(self.end - self.start))
        return {"__rate_interval": f"{self.rate:g}s", "__range": f"{whole}s", "__interval": f"{self.step:g}s"}


def load(name: str) -> dict[str, Any]:
    """A dashboard as it is checked in."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def names() -> list[str]:
    """The dashboards that are checked in."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def panels(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels but the headings."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def chosen(board: Mapping[str, Any], choice: Mapping[str, str]) -> dict[str, str]:
    """The value of each variable: that of `choice`, else what "All" stands for, else every value."""
    variables = board["templating"]["list"]
    return {v["name"]: choice.get(v["name"], v.get("allValue") or ".*") for v in variables if v["type"] == "query"}


def filled(expr: str, values: Mapping[str, str], window: Window) -> str:
    """The query with all its variables replaced. Raises KeyError for one that the dashboard does not have."""
    known = {**values, **window.variables()}
    return _VARIABLE.sub(lambda match: known[match.group(1) or match.group(2)], _keep_groups(expr)).replace("\0", "$")


def _keep_groups(expr: str) -> str:
    """`$1` of a label_replace is no variable."""
    return re.sub(r"\$(\d)", "\0\\1", expr)
