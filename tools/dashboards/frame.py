"""A whole dashboard: variables, links, annotations, and the panels on their grid. Used by the three dashboards."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as d

from tools.dashboards.panels import SOURCE, Placed

TAG: Final = "dsd"
COLUMNS: Final = 24


@dataclass(frozen=True)
class Row:
    """Panels under a heading, from left to right and then down; without a title they come first."""

    title: str
    panels: Sequence[Placed]


@dataclass(frozen=True)
class Variable:
    """A variable filled from label values. `everything` is what "All" stands for; empty: one value is chosen."""

    name: str
    label: str
    query: str
    everything: str = ".*"

    def built(self) -> dashboard.QueryVariable:
        """The variable, read again whenever the time range changes: pods come and go."""
        variable = dashboard.QueryVariable(self.name).label(self.label).datasource(SOURCE).query(self.query)
        variable.refresh(d.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(d.VariableSort.ALPHABETICAL_ASC)
        if not self.everything:
            return variable.multi(False).include_all(False)
        chosen = d.VariableOption(selected=True, text=["All"], value=["$__all"])
        return variable.multi(True).include_all(True).all_value(self.everything).current(chosen)


def scope(series: str) -> list[Variable]:
    """Job and instance of the series that match the selector `series`."""
    return [
        Variable("job", "Job", f"label_values({series}, job)", ".+"),
        Variable("instance", "Instance", f"label_values({_with(series, 'job')}, instance)", ".+"),
    ]


def _with(series: str, *variables: str) -> str:
    matchers = ", ".join(f'{name}=~"${name}"' for name in variables)
    return f"{series[:-1]}, {matchers}}}" if series.endswith("}") else f"{series}{{{matchers}}}"


@dataclass(frozen=True)
class Board:
    """Everything that makes a dashboard. `file` is its file's name without the suffix, and its uid."""

    file: str
    title: str
    text: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    annotations: Sequence[dict[str, Any]] = ()

    def render(self) -> str:
        """The JSON as it is checked in."""
        content = json.loads(json.dumps(self._built().build(), cls=JSONEncoder))
        # Grafana's data source for Prometheus reads keys of an annotation that the builders have no names for.
        content.setdefault("annotations", {})["list"] = [_ANNOTATIONS_BY_HAND, *self.annotations]
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def _built(self) -> dashboard.Dashboard:
        built = dashboard.Dashboard(self.title).uid(self.file).description(self.text).tags([TAG]).readonly()
        built.time("now-1h", "now").refresh("30s").timezone("").tooltip(d.DashboardCursorSync.CROSSHAIR)
        built.link(_link("DSD dashboards", TAG)).link(_link("vLLM dashboards", "vllm"))
        source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        built.with_variable(source)
        for variable in self.variables:
            built.with_variable(variable.built())
        built.with_variable(dashboard.AdHocVariable("filters").label("Filters").datasource(SOURCE))
        for panel in _laid_out(self.rows):
            if isinstance(panel, dashboard.Row):
                built.with_row(panel)
            else:
                built.with_panel(panel)
        return built


_ANNOTATIONS_BY_HAND: Final = {
    "builtIn": 1,
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "rgba(0, 211, 255, 1)",
    "name": "Annotations & Alerts",
    "type": "dashboard",
}


def _link(title: str, tag: str) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink(title).type(d.DashboardLinkType.DASHBOARDS).icon("external link").tags([tag])
    return link.keep_time(True).include_vars(True).as_dropdown(False).target_blank(False)


def _laid_out(content: Sequence[Row]) -> list[Any]:
    """Builders of the rows and panels, each with its number and its place."""
    found: list[Any] = []
    y = 0
    for row in content:
        if row.title:
            place = d.GridPos(h=1, w=COLUMNS, x=0, y=y)
            found.append(dashboard.Row(row.title).id(len(found) + 1).grid_pos(place))
            y += 1
        x = tallest = 0
        for placed in row.panels:
            if x + placed.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            place = d.GridPos(h=placed.height, w=placed.width, x=x, y=y)
            found.append(placed.panel.id(len(found) + 1).grid_pos(place))
            x, tallest = x + placed.width, max(tallest, placed.height)
        y += tallest
    return found
