"""Every metric that a dashboard asks for exists: in an engine, in the operator, or in the vLLM that is pinned."""

import re
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dsd_operator.metrics import Metrics
from dsd_runtime import catalogue
from tests.unit.dashboards.boards import SELECTOR, Asked, named, queries
from tools.generate_vllm_metrics import TARGET

ENDINGS: Final = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",), "gauge": ("",)}


def series(kind: str, name: str) -> set[str]:
    return {name.removesuffix("_total") + ending for ending in ENDINGS[kind]}


def known() -> dict[str, set[str]]:
    """Where each series comes from."""
    page = Metrics("1").render()[0].decode()
    return {
        "engine": set().union(*(series(family.kind, family.name) for family in catalogue.FAMILIES)),
        "operator": set().union(*(series(f.type, f.name) for f in text_string_to_metric_families(page))),
        "vLLM": {line for line in TARGET.read_text().splitlines() if not line.startswith("#")},
    }


@pytest.mark.parametrize("asked", named(queries()))
def test_metric_exists(asked: Asked) -> None:
    everything = set().union(*known().values())
    assert {name for name, _ in SELECTOR.findall(asked.expr)} <= everything


@pytest.mark.parametrize("asked", named(queries()))
def test_labels_exist(asked: Asked) -> None:
    """The labels that ours are matched by are theirs, or such as every target has."""
    target = {"job", "instance", "dsd_namespace", "dsd_name"}
    for name, matchers in SELECTOR.findall(asked.expr):
        own = {re.split("[=!]", matcher)[0] for matcher in matchers.split(", ")} - target
        assert own <= labels_of(name), name


def labels_of(name: str) -> set[str]:
    """The labels of a series, as the code declares them."""
    if name.startswith("vllm:"):
        return {"model_name", "engine"}
    for family in catalogue.FAMILIES:
        if name in series(family.kind, family.name):
            return {*catalogue.LABELS, *family.extra}
    return {"result", "code", "verb", "type", "status", "reason", "state"}


def test_every_metric_of_ours_about_steps_and_schedules_is_shown() -> None:
    """A metric that no panel shows helps nobody; those listed here are for other questions."""
    shown = {name for asked in queries() for name, _ in SELECTOR.findall(asked.expr)}
    for family in catalogue.FAMILIES:
        assert series(family.kind, family.name) & shown, family.name
