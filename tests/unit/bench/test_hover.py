"""The benchmark of a hovering load: its loads hover, its numbers follow from what was played, and each can fail."""

from collections.abc import Sequence
from typing import Any

import pytest

from bench import hover
from bench.stepped import Played
from dsd_runtime.policy import policy_of
from dsd_runtime.schedule import Smoothing, from_triples

RANGES = from_triples([(1, hover.BOUNDARY - 1, hover.HIGH), (hover.BOUNDARY, 32, hover.LOW)])
SMOOTHING = Smoothing.model_validate(hover.SMOOTHING, by_alias=True)


def played(sizes: Sequence[int], tokens: Sequence[int], seconds: float = 0.01) -> Played:
    return Played(list(sizes), list(tokens), [(0, [1] * 10 * len(sizes))], [seconds] * len(sizes))


def by_policy(load: str, policy: str, steps: int = 400, seconds: float = 0.01) -> Played:
    """What an engine would do whose steps all take the same time."""
    sizes = hover.LOADS[load](steps)
    fixed = {f"K={k}": from_triples([(1, 32, k)]) for k in (hover.HIGH, hover.LOW)}
    chooser = policy_of(fixed.get(policy, RANGES), SMOOTHING if policy == "smoothed" else None)
    return played(sizes, [chooser.choose(size, None) for size in sizes], seconds)


def data(**seconds: float) -> list[dict[str, Any]]:
    """The rows of both methods; `seconds` of a step by policy."""
    arms = {
        (load, policy): [by_policy(load, policy, seconds=seconds.get(policy, 0.01))] * 2
        for load, policy in hover.CONDITIONS
    }
    return [row for method in ("ngram", "draft_model") for row in hover.rows(method, arms)]


def misses(rows: list[dict[str, Any]]) -> set[str]:
    return {entry.name for entry in hover.required_of(rows) if not entry.met}


def test_the_loads_hover() -> None:
    assert set(hover.boundary(200)) == {8, 9}
    assert set(hover.around(400)) == set(range(6, 12))
    for load in hover.LOADS.values():
        assert load(200) == load(400)[:200], "the same every time"


def test_the_policy_meets_what_is_required() -> None:
    assert misses(data()) == set()


def test_each_requirement_can_fail() -> None:
    assert misses(data(smoothed=0.011)) == {f"{m}: smoothed over the K it holds" for m in ("ngram", "draft_model")}
    assert misses(data(table=0.001)) == set(), "told, not required"
    calm = data()
    for row in calm:
        if row.get("policy") == "smoothed":
            row["changes_per_1000_steps"] = 51
        if row.get("policy") == "table":
            row["changes_per_1000_steps"] = 199
    assert misses(calm) == {
        "table at the boundary: the load hovers",
        "smoothing at the boundary",
        "smoothing around the boundary",
    }


def test_the_price_is_that_of_changing_and_not_of_another_k() -> None:
    table = played([8, 9, 8, 9], [4, 1, 4, 1], 0.03)
    high, low = played([8, 9, 8, 9], [4] * 4, 0.04), played([8, 9, 8, 9], [1] * 4, 0.02)
    assert hover.price(table, high, low) == pytest.approx(1)
    assert hover.price(played([8, 9, 8, 9], [4, 1, 4, 1], 0.06), high, low) == pytest.approx(2)


def test_every_round_plays_every_condition_beginning_with_another() -> None:
    conditions = list(hover.order(5))
    size = len(hover.CONDITIONS)
    rounds = [conditions[i : i + size] for i in range(0, len(conditions), size)]
    assert len(rounds) == 6
    assert all(set(one) == set(hover.CONDITIONS) for one in rounds)
    assert len({one[0] for one in rounds}) == size
