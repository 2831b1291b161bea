"""The plan of a profile: order, time, and what the command line may ask for."""

from collections import Counter
from typing import Any, Final

import click
import pytest

from dsd_runtime.schedule import from_triples
from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.plan import Cell, Plan, concurrencies_of, duration_text, parse_numbers, tokens_of

ENVELOPE: Final[dict[str, Any]] = {"preparedTokens": [0, 1, 4], "allowedTokens": [0, 1, 2, 3, 4]}
PLAN: Final = Plan((1, 4), (0, 1, 3), rounds=3, duration=2.0, warm_up=5.0)


def test_every_cell_is_measured_once_in_each_round() -> None:
    assert Counter(PLAN.cells()) == {Cell(r, c, k): 1 for r in range(3) for c in (1, 4) for k in (0, 1, 3)}


def test_all_k_of_a_concurrency_follow_each_other_and_begin_in_turn() -> None:
    cells = PLAN.cells()
    blocks = [cells[i : i + 3] for i in range(0, len(cells), 3)]

    assert all(len({(c.round, c.concurrency) for c in block}) == 1 for block in blocks)
    assert Counter(block[0].k for block in blocks) == {0: 2, 1: 2, 3: 2}


def test_the_time_is_that_of_all_windows_with_what_lies_between() -> None:
    assert PLAN.seconds(settle=1.0) == 5.0 + 18 * 3.0


def test_concurrencies_are_powers_of_two_up_to_the_limit() -> None:
    assert concurrencies_of(None, 16) == (1, 2, 4, 8, 16)
    assert concurrencies_of(None, 1024) == (1, 2, 4, 8, 16, 32, 64)
    assert concurrencies_of(None, 1) == (1,)


def test_more_than_the_engine_runs_is_refused_with_the_field_to_raise() -> None:
    with pytest.raises(Failure) as refused:
        concurrencies_of("1,32", 16)
    assert "maxNumSeqs" in refused.value.hint


def test_k_is_what_was_prepared_and_what_the_schedule_uses() -> None:
    assert tokens_of(None, ENVELOPE, from_triples([(1, 8, 3), (9, 64, 0)])) == (0, 1, 3, 4)
    assert tokens_of("4, 0,4", ENVELOPE, ()) == (0, 4)


def test_a_k_that_the_engine_cannot_use_is_refused() -> None:
    with pytest.raises(Failure, match="--k 5"):
        tokens_of("1,5", ENVELOPE, ())


@pytest.mark.parametrize("text", ["", "1;2", "-1", "1.5", "²", "x", "9999"])
def test_lists_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--k"):
        parse_numbers(text, "--k", 128)


def test_no_load_is_refused() -> None:
    with pytest.raises(click.UsageError, match="smallest is 1"):
        concurrencies_of("0,1", 16)


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (7260, "2 h 01 min")])
def test_durations_are_told_as_people_say_them(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
