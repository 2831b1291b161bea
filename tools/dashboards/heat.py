"""The two maps of K against concurrency: tokens per second with the schedule drawn on it, and the gain over K=0.

Grafana's own heat map has time as its x axis, so the first map is an XY chart whose points are coloured squares; its
settings are those of Grafana 11.1 and newer, for which the locked builders have no class. The second is a table with
coloured cells.
"""

from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as d

from tools.dashboards import promql as q
from tools.dashboards.panels import (
    ORANGE,
    RATIO,
    TOKENS_PER_SECOND,
    Placed,
    Query,
    column,
    dress,
    rows,
    transformation,
)  # fmt: skip

_LOG: Final = {"type": "log", "log": 2}


def heat_map() -> Placed:
    """Tokens per second by concurrency (x) and K (y), and the schedule as a line over it."""
    panel = dashboard.Panel().type("xychart")
    queries = [Query(q.tokens_per_second(), instant=True), Query(q.schedule(), instant=True)]
    dress(panel, "Tokens per second by K and concurrency, and the schedule",
          "Each square is a K that has run at a concurrency (requests in a step, up to this number) within the whole "
          "range; its colour is what one engine emitted in a second. The line is the schedule in force: where a "
          "brighter square lies off the line, the schedule can be better. Estimated from steps whose time is known.",
          TOKENS_PER_SECOND, queries)  # fmt: skip
    panel.transformations([
        _numbers("k", "concurrency", "batch"),
        transformation("sortBy", fields={}, sort=[{"field": "batch"}]),
    ])  # fmt: skip
    _draw(panel)
    _name_the_axes(panel)
    return Placed(panel, 14, 10)


def _draw(panel: dashboard.Panel) -> None:
    """Squares for the first query, and a line for the second."""
    panel.custom({"show": "points", "pointShape": "square", "pointSize": {"fixed": 30}, "fillOpacity": 90,
                  "scaleDistribution": {"type": "linear"}})  # fmt: skip
    panel.options({
        "mapping": "manual",
        "series": [
            _points("tokens per second", 0, x="concurrency", y="k", color="Value #A"),
            _points("schedule", 1, x="batch", y="Value #B"),
        ],
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    })  # fmt: skip


def _name_the_axes(panel: dashboard.Panel) -> None:
    panel.override_by_regexp("^(concurrency|batch)$", column(custom__scaleDistribution=_LOG, unit="none",
                                                             custom__axisLabel="requests in a step"))  # fmt: skip
    panel.override_by_name("k", column(unit="none", min=-0.5, custom__axisLabel="K"))
    panel.override_by_name("Value #A", column(displayName="Tokens per second", color={"mode": "continuous-viridis"}))
    panel.override_by_name("Value #B", column(
        displayName="Scheduled K", unit="none", color={"mode": "fixed", "fixedColor": ORANGE}, custom__show="lines",
        custom__lineWidth=3))  # fmt: skip


def gain_matrix() -> Placed:
    """Gain over K=0 as a coloured table: one line for each concurrency, one column for each K."""
    corner = "concurrency\\k"
    return rows(
        "Gain over K=0 by K and concurrency",
        "How many more tokens per second each K brought than K=0 at the same concurrency, within the whole range. "
        "Green pays, red costs. Empty where one of the two has not run: let the schedule try it for a while, or "
        "measure with `kubectl dsd profile`.",
        RATIO, [Query(q.gain_by_cell(), instant=True)],
        [
            _numbers("k"),
            transformation("sortBy", fields={}, sort=[{"field": "k"}]),
            transformation("groupingToMatrix", columnField="k", rowField="concurrency", valueField="Value",
                           emptyValue="null"),
            _numbers(corner),
            transformation("sortBy", fields={}, sort=[{"field": corner}]),
            transformation("renameByRegex", regex=r"^(\d+)$", renamePattern="K=$1"),
            transformation("organize", excludeByName={}, indexByName={}, renameByName={corner: "Requests"}),
        ],
        [("Requests", column(unit="none", custom__width=150)),
         (r"K=\d+", column(custom__cellOptions={"type": "color-background", "mode": "basic"}))],
        width=10, height=10, coloured=((None, "dark-red"), (-0.1, "semi-dark-red"), (-0.02, "super-light-yellow"),
                                       (0.02, "semi-dark-green"), (0.3, "dark-green")),
    )  # fmt: skip


def _numbers(*fields: str) -> d.DataTransformerConfig:
    """Labels are text to Prometheus; these are numbers."""
    conversions = [{"targetField": field, "destinationType": "number"} for field in fields]
    return transformation("convertFieldType", fields={}, conversions=conversions)


def _points(name: str, frame: int, **fields: str) -> dict[str, Any]:
    """One series of an XY chart: which columns of which query's answer it takes."""
    columns = {axis: {"matcher": {"id": "byName", "options": field}} for axis, field in fields.items()}
    return {"name": {"fixed": name}, "frame": {"matcher": {"id": "byIndex", "options": frame}}, **columns}
