"""Panels in the house style, made with Grafana's own typed builders: time series, single values, tables, heat maps.

A panel always has a description that ends with the metrics it reads, a unit, and words for "no data". `frame` puts the
panels on a dashboard.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models import heatmap as h
from grafana_foundation_sdk.models import prometheus as p

Builder = bargauge.Panel | dashboard.Panel | heatmap.Panel | stat.Panel | table.Panel | timeseries.Panel

SOURCE: Final = d.DataSourceRef(type_val="prometheus", uid="${datasource}")
NO_DATA: Final = "no data"

# Units in Grafana's spelling.
COUNT: Final = "short"
RATIO: Final = "percentunit"
SECONDS: Final = "s"
TOKENS_PER_SECOND: Final = "count:tok/s"
PER_SECOND: Final = "ops"

GREY: Final = "#8e8e8e"
ORANGE: Final = "orange"
_OF_K: Final = (GREY, "#5794f2", "#73bf69", "#fade2a", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#ffa6b0")
"""A colour for each K, the same on every panel; a larger K takes what is left of Grafana's palette."""
Steps = Sequence[tuple[float | None, str]]
"""Colours from these values on; None stands for the lowest."""

_METRIC: Final = re.compile(r"\b((?:dsd_|vllm:)\w+)\{")


@dataclass(frozen=True)
class Query:
    """One query of a panel and the legend of its series; `instant` asks for the latest values only, as a table."""

    expr: str
    legend: str = "__auto"
    instant: bool = False


@dataclass(frozen=True)
class Placed:
    """A panel, and its size on the dashboard's grid (24 columns)."""

    panel: Builder
    width: int
    height: int


def metrics_of(expr: str) -> set[str]:
    """The names of the metrics that a query of ours reads; each is followed by its matchers."""
    return set(_METRIC.findall(expr))


def _described(text: str, queries: Sequence[Query]) -> str:
    names = sorted(set().union(*(metrics_of(query.expr) for query in queries)))
    return f"{text}\n\nMetrics: {', '.join(f'`{name}`' for name in names)}"


def dress(panel: Builder, title: str, text: str, unit: str, queries: Sequence[Query]) -> None:
    """What every panel has: words, unit, data source, queries, and what stands where there is no data."""
    panel.title(title).description(_described(text, queries)).datasource(SOURCE).unit(unit).no_value(NO_DATA)
    panel.mappings([d.SpecialValueMap(d.DashboardSpecialValueMapOptions(
        match=d.SpecialValueMatch.NULL_AND_NAN, result=d.ValueMappingResult(text=NO_DATA, index=0),
    ))])  # fmt: skip
    for letter, query in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(_target(letter, query))


def _target(letter: str, query: Query) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter).datasource(SOURCE)
    return target.instant().format(p.PromQueryFormat.TABLE) if query.instant else target.range()


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    """Colours by absolute values."""
    return (
        dashboard.ThresholdsConfig()
        .mode(d.ThresholdsMode.ABSOLUTE)
        .steps([d.Threshold(value=value, color=colour) for value, colour in steps])
    )


def value(
    title: str, text: str, unit: str, expr: str, steps: Steps = ((None, "blue"),), decimals: int | None = None,
    width: int = 4, label: str = "",
) -> Placed:  # fmt: skip
    """One number with its course behind it; with `label` the value of that label instead."""
    panel = stat.Panel()
    dress(panel, title, text, unit, [Query(expr, f"{{{{{label}}}}}" if label else "__auto")])
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    panel.graph_mode(c.BigValueGraphMode.AREA).color_mode(c.BigValueColorMode.VALUE).reduce_options(reduce)
    panel.text_mode(c.BigValueTextMode.NAME if label else c.BigValueTextMode.VALUE)
    panel.color_scheme(dashboard.FieldColor().mode(d.FieldColorModeId.THRESHOLDS)).thresholds(thresholds(steps))
    if decimals is not None:
        panel.decimals(decimals)
    return Placed(panel, width, 4)


@dataclass(frozen=True)
class Look:
    """How a time series is drawn: `right` (a regular expression of legends) has the right axis, in `right_unit`."""

    style: Literal["lines", "steps", "stacked"] = "lines"
    lowest: float | None = 0
    highest: float | None = None
    decimals: int | None = None
    right: str = ""
    right_unit: str = COUNT
    right_label: str = ""
    left_label: str = ""
    zero_line: bool = False


def series(
    title: str, text: str, unit: str, *queries: Query, look: Look | None = None, width: int = 12, height: int = 8
) -> Placed:
    """Values over time."""
    panel, look = timeseries.Panel(), look or Look()
    dress(panel, title, text, unit, queries)
    panel.line_width(1).fill_opacity(10).show_points(c.VisibilityMode.NEVER)
    panel.legend(common.VizLegendOptions().display_mode(c.LegendDisplayMode.LIST)
                 .placement(c.LegendPlacement.BOTTOM).show_legend(True).calcs([]))  # fmt: skip
    panel.tooltip(common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING))
    panel.color_scheme(dashboard.FieldColor().mode(d.FieldColorModeId.PALETTE_CLASSIC))
    _scale(panel, look)
    _shape(panel, look)
    if any(query.legend == "K={{k}}" for query in queries):
        for k, colour in enumerate(_OF_K):
            panel.override_by_name(f"K={k}", [_fixed(colour)])
    return Placed(panel, width, height)


def _scale(panel: timeseries.Panel, look: Look) -> None:
    if look.lowest is not None:
        panel.min(look.lowest)
    if look.highest is not None:
        panel.max(look.highest)
    if look.decimals is not None:
        panel.decimals(look.decimals)
    if look.left_label:
        panel.axis_label(look.left_label)
    if look.zero_line:
        panel.thresholds(thresholds([(None, "transparent"), (0, GREY)]))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(c.GraphTresholdsStyleMode.LINE))


def _shape(panel: timeseries.Panel, look: Look) -> None:
    if look.style == "steps":
        panel.line_interpolation(c.LineInterpolation.STEP_AFTER).line_width(2)
    if look.style == "stacked":
        panel.stacking(common.StackingConfig().mode(c.StackingMode.NORMAL)).fill_opacity(70)
    if look.right:
        panel.override_by_regexp(look.right, [
            d.DynamicConfigValue("custom.axisPlacement", "right"),
            d.DynamicConfigValue("custom.axisLabel", look.right_label),
            d.DynamicConfigValue("custom.lineInterpolation", "linear"),
            d.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
            d.DynamicConfigValue("custom.fillOpacity", 0),
            d.DynamicConfigValue("unit", look.right_unit),
        ])  # fmt: skip


def _fixed(colour: str) -> d.DynamicConfigValue:
    return d.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def histogram_over_time(title: str, text: str, unit: str, expr: str, width: int = 12, height: int = 8) -> Placed:
    """Observations of a histogram over time, brighter where more fell (`expr`: rates by `le`)."""
    panel = heatmap.Panel()
    dress(panel, title, text, unit, [])
    query = prometheus.Dataquery().expr(expr).legend_format("{{le}}").ref_id("A").datasource(SOURCE).range()
    panel.description(_described(text, [Query(expr)])).with_target(query.format(p.PromQueryFormat.HEATMAP))
    colour = heatmap.HeatmapColorOptions().mode(h.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64)
    panel.calculate(False).color(colour).y_axis(heatmap.YAxisConfig().unit(unit)).cell_gap(1)
    panel.cell_values(heatmap.CellValues().unit(PER_SECOND)).show_tooltip()
    return Placed(panel, width, height)


def bars(title: str, text: str, unit: str, query: Query, width: int = 8, height: int = 8) -> Placed:
    """The latest values side by side, each as a bar from 0 to 1."""
    panel = bargauge.Panel()
    dress(panel, title, text, unit, [query])
    panel.display_mode(c.BarGaugeDisplayMode.GRADIENT).orientation(c.VizOrientation.HORIZONTAL).min(0).max(1)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    panel.color_scheme(dashboard.FieldColor().mode(d.FieldColorModeId.THRESHOLDS))
    panel.thresholds(thresholds([(None, "red"), (0.3, ORANGE), (0.6, "green")]))
    return Placed(panel, width, height)


def transformation(name: str, **options: Any) -> d.DataTransformerConfig:
    """A step between query and panel."""
    return d.DataTransformerConfig(id_val=name, options=options)


def rows(
    title: str, text: str, unit: str, queries: Sequence[Query], steps: Sequence[d.DataTransformerConfig],
    overrides: Sequence[tuple[str, Sequence[d.DynamicConfigValue]]] = (), width: int = 12, height: int = 8,
    coloured: Steps = (),
) -> Placed:  # fmt: skip
    """A table of the latest values. `overrides`: settings of columns by patterns of names; `coloured`: the colours."""
    panel = table.Panel()
    dress(panel, title, text, unit, queries)
    panel.transformations(list(steps))
    if coloured:
        panel.color_scheme(dashboard.FieldColor().mode(d.FieldColorModeId.THRESHOLDS)).thresholds(thresholds(coloured))
    for name, settings in overrides:
        panel.override_by_regexp(f"^{name}$", list(settings))
    return Placed(panel, width, height)


def column(**settings: Any) -> list[d.DynamicConfigValue]:
    """Settings of one column; `__` in a name stands for the dot."""
    return [d.DynamicConfigValue(name.replace("__", "."), value) for name, value in settings.items()]
