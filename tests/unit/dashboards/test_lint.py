"""The rules of Grafana's dashboard-linter, by its names for them, and what else a dashboard here must keep to.

One rule is broken on purpose, and only in the places named below.
"""

import re
from typing import Final

import pytest

from tests.unit.dashboards.boards import BOARDS, SELECTOR, Asked, Json, named, panels, queries, variables

PANELS: Final = [pytest.param(panel, id=where) for where, panel in panels()]
QUERIES: Final = named(queries())
WINDOW: Final = re.compile(r"\[([^\]]+)\]")

WHOLE_RANGE: Final = {
    "dsd-deployment: Gain over K=0": "the speed of K=0 is that of the whole range: it seldom runs beside the others",
    "dsd-deployment: Gain over K=0 by K and concurrency": "a table of all that has run in the range",
    "dsd-deployment: Tokens per second by K and concurrency, and the schedule": "a map of all that ran in the range",
    "dsd-operator: Change to acknowledged, p95": "changes are rare: a window of a rate seldom holds one",
}
"""Where a query looks at the dashboard's whole range, and why (target-rate-interval-rule)."""

UNITS: Final = {"short", "none", "percentunit", "s", "ops", "count:tok/s"}


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
class TestDashboard:
    """Rules about a whole dashboard."""

    def test_template_datasource_rule(self, board: Json) -> None:
        (source,) = (v for v in board["templating"]["list"] if v["type"] == "datasource")
        assert (source["name"], source["query"], source["label"]) == ("datasource", "prometheus", "Data source")

    @pytest.mark.parametrize("name", ["job", "instance"])
    def test_template_job_and_instance_rules(self, board: Json, name: str) -> None:
        (found,) = (v for v in board["templating"]["list"] if v["name"] == name)
        assert found["type"] == "query"
        assert found["datasource"]["uid"] == "${datasource}"
        assert found["label"] == name.title()
        assert (found["multi"], found["includeAll"], found["allValue"]) == (True, True, ".+")

    def test_template_uneditable_rule(self, board: Json) -> None:
        assert board["editable"] is False

    def test_no_fixed_data_source_is_left(self, board: Json) -> None:
        uids = {source["uid"] for source in _sources(board)}
        assert uids <= {"${datasource}", "-- Grafana --"}

    def test_uid_title_and_tag(self, board: Json) -> None:
        assert re.fullmatch(r"dsd-[a-z]{1,30}", board["uid"])
        assert board["title"] == f"DSD / {board['uid'].removeprefix('dsd-').title()}"
        assert board["tags"] == ["dsd"]
        assert "id" not in board
        assert board["description"]

    def test_links_lead_to_the_others_and_to_vllms(self, board: Json) -> None:
        links = {tuple(link["tags"]): (link["keepTime"], link["includeVars"]) for link in board["links"]}
        assert links == {("dsd",): (True, True), ("vllm",): (True, True)}

    def test_panels_fill_the_grid_without_overlap(self, board: Json) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
            assert not cells & taken, panel["title"]
            taken |= cells
        assert {x for x, _ in taken} == set(range(24))
        height = max(y for _, y in taken) + 1
        assert len(taken) == 24 * height

    def test_numbers_of_panels_are_unique(self, board: Json) -> None:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))


def _sources(node: object) -> list[Json]:
    if isinstance(node, list):
        return [source for item in node for source in _sources(item)]
    if not isinstance(node, dict):
        return []
    own = [node["datasource"]] if isinstance(node.get("datasource"), dict) else []
    return own + [source for value in node.values() for source in _sources(value)]


def test_uids_and_titles_exist_once() -> None:
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS) == 3
    titles = {board["title"] for board in BOARDS.values()}
    assert len(titles) == len(BOARDS)
    # vLLM's own may lie in the same folder.
    assert not any(title.startswith("vLLM / ") for title in titles)


@pytest.mark.parametrize(("name", "variable"), list(variables()))
def test_template_on_time_change_reload_rule(name: str, variable: Json) -> None:
    if variable["type"] == "query":
        assert variable["refresh"] == 2, f"{name}: {variable['name']}"


@pytest.mark.parametrize(("name", "variable"), list(variables()))
def test_template_label_promql_rule(name: str, variable: Json) -> None:
    if variable["type"] != "query":
        return
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
    assert found, f"{name}: {variable['name']}"
    known = {v["name"] for n, v in variables() if n == name}
    assert set(re.findall(r"\$(\w+)", found[1])) <= known - {variable["name"]}


def test_a_resource_without_an_engine_can_be_chosen() -> None:
    """It is the one whose state somebody wants to see: the operator speaks of it, and no engine does."""
    for name, variable in variables():
        if variable["name"] in ("namespace", "deployment"):
            assert "dsd_operator_condition" in variable["query"], name


@pytest.mark.parametrize("panel", PANELS)
class TestPanel:
    """Rules about a panel."""

    def test_panel_datasource_rule(self, panel: Json) -> None:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])

    def test_panel_title_description_rule(self, panel: Json) -> None:
        text, _, metrics = panel["description"].partition("\n\nMetrics: ")
        assert panel["title"]
        assert len(text) > 20
        assert text.endswith((".", ".)"))
        asked = {name for target in panel["targets"] for name, _ in SELECTOR.findall(target["expr"])}
        assert {name.strip("`") for name in metrics.split(", ")} == asked

    def test_panel_units_rule(self, panel: Json) -> None:
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS

    def test_panel_no_targets_rule(self, panel: Json) -> None:
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])

    def test_no_data_has_words(self, panel: Json) -> None:
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"]
        (mapping,) = defaults["mappings"]
        assert (mapping["type"], mapping["options"]["match"]) == ("special", "null+nan")

    def test_a_legend_tells_the_series_apart(self, panel: Json) -> None:
        """Each label that a time series is summed by is in its legend."""
        for target in panel["targets"]:
            by = re.search(r"^(?:histogram_quantile\([\d.]+, )?\(?(?:sum|max|count) by \(([^)]*)\)", target["expr"])
            if panel["type"] == "timeseries" and by:
                labels = set(by[1].split(", ")) - {"le"}
                assert labels == set(re.findall(r"{{(\w+)}}", target["legendFormat"])), target["expr"]


@pytest.mark.parametrize("asked", QUERIES)
class TestQuery:
    """Rules about a query. That it is valid PromQL, the tests with a real Prometheus show."""

    def test_target_job_and_instance_rules(self, asked: Asked) -> None:
        selectors = SELECTOR.findall(asked.expr)
        assert selectors
        for name, matchers in selectors:
            assert 'job=~"$job"' in matchers, name
            assert 'instance=~"$instance"' in matchers, name

    def test_every_metric_has_matchers(self, asked: Asked) -> None:
        bare = re.findall(r"\b(?:dsd_(?!namespace\b|name\b)|vllm:)\w+(?![\w{])", re.sub(r'"[^"]*"', '""', asked.expr))
        assert bare == []

    def test_target_rate_interval_rule(self, asked: Asked) -> None:
        panel = asked.where.rpartition(": ")[0]
        windows = set(WINDOW.findall(asked.expr))
        assert windows <= {"$__rate_interval"} | ({"$__range"} if panel in WHOLE_RANGE else set())

    def test_target_counter_agg_rule(self, asked: Asked) -> None:
        """A counter is only ever asked for its growth."""
        for found in SELECTOR.finditer(asked.expr):
            counter = found[1].endswith(("_total", "_bucket", "_count", "_sum"))
            before = asked.expr[: found.start()]
            assert counter == bool(re.search(r"\b(?:rate|increase)\($", before)), found[0]

    def test_ratios_are_guarded(self, asked: Asked) -> None:
        """What is divided by is compared with 0, or made of such a ratio: no infinity, no NaN."""
        for divisor in re.findall(r" / (?:on \(\w*\) group_left \(\) )?(\S+)", asked.expr):
            assert divisor.startswith("("), divisor


def test_every_exception_is_one() -> None:
    used = {asked.where.rpartition(": ")[0] for asked in queries() if "[$__range]" in asked.expr}
    assert used == set(WHOLE_RANGE)
