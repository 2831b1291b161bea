"""Schedules by themselves: messages, conversion, hash, the default of prepared K."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dsd_runtime.schedule import (
    MAX_BATCH_SIZE,
    MAX_RANGES,
    Lookup,
    Ranges,
    ScheduleRange,
    Smoothing,
    default_prepared_tokens,
    from_triples,
    schedule_hash,
    to_triples,
    validate,
)
from tests.unit.runtime_core.strategies import valid_ranges

SEED = [[1, 16, 5], [17, 32, 4], [33, 64, 3], [65, 128, 1], [129, 512, 0]]


@pytest.mark.parametrize(
    ("table", "field", "words"),
    [
        ([], "ranges", "K=0"),
        ([(i, i, 0) for i in range(1, MAX_RANGES + 2)], "ranges", "at most 32"),
        ([(2, 3, 1)], "ranges[0].startBatchSize", "must start at 1"),
        ([(1, 4, 1), (9, 5, 1)], "ranges[1]", "is above endBatchSize"),
        ([(1, 4, 1), (4, 5, 1)], "ranges[1].startBatchSize", "must not overlap"),
        ([(1, 4, 1), (9, 12, 1), (5, 6, 1)], "ranges[2].startBatchSize", "must ascend"),
        ([(1, 4, 1), (5, 8, 4)], "ranges[1].numSpeculativeTokens", "restarts the engine"),
    ],
)
def test_says_what_is_wrong_and_where(table: list[tuple[int, int, int]], field: str, words: str) -> None:
    (problem,) = validate(from_triples(table), 3)
    assert problem.field == field
    assert words in problem.message


def test_reports_every_problem_at_once() -> None:
    fields = [p.field for p in validate(from_triples([(2, 1, 9), (1, 3, 9)]), 3)]
    assert sorted(fields) == [
        "ranges[0]",
        "ranges[0].numSpeculativeTokens",
        "ranges[0].startBatchSize",
        "ranges[1].numSpeculativeTokens",
        "ranges[1].startBatchSize",
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"startBatchSize": "1", "endBatchSize": 8, "numSpeculativeTokens": 3},
        {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": True},
        {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2.5},
        {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 129},
        {"startBatchSize": 1, "endBatchSize": MAX_BATCH_SIZE + 1, "numSpeculativeTokens": 1},
        {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3, "context": 4096},
        {"startBatchSize": 1, "endBatchSize": 8},
    ],
)
def test_refuses_rows_that_are_not_three_integers(row: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScheduleRange.model_validate(row)


@pytest.mark.parametrize("row", [(1, 8), (1, 8, 3, 4)])
def test_refuses_triples_of_another_length(row: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        from_triples([row])


@given(st.integers(1, 128).flatmap(valid_ranges))
def test_triples_round_trip(ranges: Ranges) -> None:
    assert from_triples(to_triples(ranges)) == ranges


def test_seed_schedule_looks_up_as_written() -> None:
    lookup = Lookup.of(from_triples(SEED))
    assert [lookup(n) for n in (1, 16, 17, 32, 64, 65, 128, 129, 512, 513, 10**9)] == [5, 5, 4, 4, 3, 1, 1, 0, 0, 0, 0]


def test_a_gap_keeps_the_k_before_it() -> None:
    lookup = Lookup.of(from_triples([(1, 16, 3), (64, 128, 2)]))
    assert (lookup(17), lookup(63), lookup(64)) == (3, 3, 2)


def test_hash_depends_on_every_number_and_on_nothing_else() -> None:
    base = schedule_hash(from_triples(SEED))
    assert base == schedule_hash(from_triples([tuple(row) for row in SEED]))
    for i in range(len(SEED)):
        for j in range(3):
            changed = [list(row) for row in SEED]
            changed[i][j] += 1
            assert schedule_hash(from_triples(changed)) != base
    assert len(base) == 16


def test_hash_takes_smoothing_in_only_where_it_does_something() -> None:
    ranges = from_triples(SEED)
    hashes = {schedule_hash(ranges, Smoothing(dwell_steps=d, margin_percent=m)) for d in range(3) for m in range(3)}
    assert len(hashes) == 9
    assert schedule_hash(ranges, Smoothing()) == schedule_hash(ranges, None) == schedule_hash(ranges)


def test_hash_of_a_plain_schedule_never_changes() -> None:
    """Both sides compute it, each in its own version."""
    assert schedule_hash(from_triples([(1, 64, 3), (65, 128, 1), (129, 512, 0)])) == "7b4bdb48ff89e43d"


@pytest.mark.parametrize(
    ("maximum", "prepared"),
    [(1, (0, 1)), (2, (0, 1, 2)), (4, (0, 1, 2, 3, 4)), (5, (0, 1, 3, 5)), (7, (0, 1, 4, 7)), (16, (0, 1, 8, 16))],
)
def test_default_prepared_tokens(maximum: int, prepared: tuple[int, ...]) -> None:
    assert default_prepared_tokens(maximum) == prepared
