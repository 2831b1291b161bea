"""Choosing a revision: the stored one, the one minted a moment ago, or a new one."""

from typing import Any

import pytest

from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.revisions import choose
from dsd_operator.render.config_map import config_map
from dsd_operator.render.context import RenderContext
from dsd_runtime.protocol import Revision
from tests.unit.resources import resource

OTHER = [{"startBatchSize": 1, "endBatchSize": 256, "numSpeculativeTokens": 0}]


@pytest.fixture
def memory() -> Memory:
    return Memory("uid")


def stored(revision: Revision, **changes: Any) -> dict[str, Any]:
    return config_map(resource(changes), RenderContext("image", revision))


def test_the_first_one_is_the_time(memory: Memory) -> None:
    assert choose(resource(), None, (), memory, 5000).number == 5000


def test_it_stays_while_the_config_map_holds_it(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    assert choose(resource(), stored(first), (), memory, 6000) == first
    assert choose(resource(), stored(first), (), Memory("uid"), 6000) == first, "after a restart as well"


def test_a_config_map_that_cannot_be_written_does_not_mint_one_in_each_pass(memory: Memory) -> None:
    old = stored(Revision(owner="team-a/demo/11111111-2222", number=4000), schedule=OTHER)
    first = choose(resource(), old, (), memory, 5000)
    assert first.number == 5000
    assert choose(resource(), old, (), memory, 6000) == first


def test_a_config_map_that_was_deleted_comes_back_with_its_revision(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    assert choose(resource(), stored(first), (), memory, 6000) == first
    assert choose(resource(), None, (), memory, 7000) == first


def test_a_new_schedule_gets_a_new_one(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    second = choose(resource({"schedule": OTHER}), stored(first), (), memory, 6000)
    assert second.number == 6000
    assert choose(resource(), stored(second, schedule=OTHER), (), memory, 6000).number == 6001, (
        "back again is a change too"
    )


def test_another_smoothing_gets_a_new_one_and_another_spelling_of_off_does_not(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    assert choose(resource({"smoothing": {"dwellSteps": 0}}), stored(first), (), memory, 6000) == first
    calm = {"smoothing": {"dwellSteps": 20, "marginPercent": 0}}
    second = choose(resource(calm), stored(first), (), memory, 6000)
    assert second.number == 6000
    assert choose(resource(calm), stored(first), (), memory, 6500) == second, "not written yet"
    assert choose(resource(calm), stored(second, **calm), (), memory, 7000) == second
    assert choose(resource(calm), stored(second), (), memory, 8000).number == 8000, "somebody took it out of the file"
    assert choose(resource(), stored(second, **calm), (), Memory("uid"), 9000).number == 9000


def test_a_config_map_edited_by_hand_is_replaced(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    by_hand = stored(first, schedule=OTHER)
    assert choose(resource(), by_hand, (), memory, 6000).number == 6000


def test_a_restored_config_map_is_overtaken(memory: Memory) -> None:
    first = choose(resource({"schedule": OTHER}), None, (), memory, 5000)
    second = choose(resource(), stored(first, schedule=OTHER), (), memory, 6000)
    assert choose(resource(), stored(second), (), memory, 6500) == second
    restored = stored(first, schedule=OTHER)
    again = choose(resource(), restored, (second,), memory, 7000)
    assert again.number >= second.number
    assert choose(resource(), stored(again), (again,), memory, 8000) == again


def test_a_pod_that_is_ahead_forces_a_higher_one_even_if_the_clock_went_back(memory: Memory) -> None:
    first = choose(resource(), None, (), memory, 5000)
    seen = Revision(owner="somebody/else", number=9000)
    second = choose(resource(), stored(first), (seen,), memory, 100)
    assert second.number == 9001
    assert choose(resource(), stored(first), (second,), memory, 200) == second
