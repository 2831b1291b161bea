"""What every painter of a panel gets, and what they share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from tools.dashboards.answers import Answer
from tools.dashboards.grafana import Window


@dataclass(frozen=True)
class Drawing:
    """The axes to paint on (the panel without its title), the panel, its answers, the times, and the annotations."""

    axes: Axes
    panel: Mapping[str, Any]
    answers: list[Answer]
    window: Window
    changes: Mapping[float, str]

    @property
    def field(self) -> Mapping[str, Any]:
        """The defaults of the panel's fields: unit, decimals, thresholds, …"""
        defaults: Mapping[str, Any] = self.panel["fieldConfig"]["defaults"]
        return defaults

    def overrides(self) -> list[tuple[str, dict[str, Any]]]:
        """Patterns of names, and the settings of the fields that match."""
        found = self.panel["fieldConfig"].get("overrides") or []
        return [(_pattern(o["matcher"]), {p["id"]: p["value"] for p in o["properties"]}) for o in found]


def _pattern(matcher: Mapping[str, str]) -> str:
    text = matcher["options"]
    return text if matcher["id"] == "byRegexp" else f"^{re.escape(text)}$"
