"""The promise the design stands on: neither the schedule nor replicas can change the pod template."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.config_map import read
from dsd_runtime.schedule import schedule_hash
from tests.unit.resources import manifests, resource


@st.composite
def schedules(draw: st.DrawFn, maximum: int = 3) -> list[dict[str, int]]:
    """Any valid schedule, gaps included."""
    edges = sorted(draw(st.sets(st.integers(2, 2000), max_size=7)))
    starts = [1, *edges]
    ends = [draw(st.integers(start, following - 1)) for start, following in zip(starts, [*edges, 4000], strict=True)]
    return [
        {"startBatchSize": start, "endBatchSize": end, "numSpeculativeTokens": draw(st.integers(0, maximum))}
        for start, end in zip(starts, ends, strict=True)
    ]


def without(made: dict[str, dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {key: value for key, value in made.items() if key != kind}


@given(schedules())
def test_a_schedule_changes_the_config_map_and_nothing_else(schedule: list[dict[str, int]]) -> None:
    before, after = manifests(resource()), manifests(resource({"schedule": schedule}))
    assert without(after, "ConfigMap") == without(before, "ConfigMap")
    content = read(after["ConfigMap"])
    assert content is not None
    assert [r.model_dump(by_alias=True) for r in content.ranges] == schedule


SMOOTHINGS = st.fixed_dictionaries(
    {}, optional={"dwellSteps": st.integers(0, 10_000), "marginPercent": st.integers(0, 50)}
)


@given(schedules(), SMOOTHINGS, SMOOTHINGS)
def test_smoothing_changes_the_config_map_and_nothing_else(
    schedule: list[dict[str, int]], one: dict[str, int], other: dict[str, int]
) -> None:
    before = manifests(resource({"smoothing": one}))
    after = manifests(resource({"schedule": schedule, "smoothing": other}))
    assert without(after, "ConfigMap") == without(before, "ConfigMap")
    content = read(after["ConfigMap"])
    assert content is not None
    assert (content.smoothing is not None) == any(other.values())
    assert content.smoothing is None or content.smoothing.model_dump(by_alias=True).items() >= other.items()


@pytest.mark.parametrize("off", [None, {}, {"dwellSteps": 0}, {"dwellSteps": 0, "marginPercent": 0}])
def test_smoothing_that_is_off_is_not_rendered(off: dict[str, int] | None) -> None:
    assert manifests(resource({"smoothing": off})) == manifests(resource())


@given(st.integers(0, 10000))
def test_replicas_change_one_number(replicas: int) -> None:
    before, after = manifests(resource()), manifests(resource({"replicas": replicas}))
    assert after["Deployment"]["spec"].pop("replicas") == replicas
    before["Deployment"]["spec"].pop("replicas")
    assert after == before


def test_the_file_is_readable_by_people_and_carries_the_revision() -> None:
    made = manifests(resource())["ConfigMap"]
    (text,) = made["data"].values()
    assert json.loads(text)["revision"] == {"owner": "o", "number": 7}
    content = read(made)
    assert content is not None
    assert schedule_hash(content.ranges) == schedule_hash(resource().spec.schedule)


def test_what_somebody_wrote_into_the_config_map_never_crashes() -> None:
    for data in (None, {}, {"config.yaml": ""}, {"config.yaml": "{"}, {"config.yaml": '{"ranges": []}'}):
        assert read({"data": data}) is None
