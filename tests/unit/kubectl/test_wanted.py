"""Schedules of a resource: the short form comes back, ages are read."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_runtime.cli.wanted import from_short
from dsd_runtime.schedule import MAX_BATCH_SIZE, from_triples
from kubectl_dsd.ages import age
from kubectl_dsd.errors import Failure
from kubectl_dsd.schedule.compare import Column, differs, rows
from kubectl_dsd.wanted import Schedule, schedule_of

ENDS = st.lists(st.integers(1, 500), min_size=1, max_size=6, unique=True).map(sorted)


@given(ENDS, st.lists(st.integers(0, 8), min_size=6, max_size=6), st.booleans())
def test_the_short_form_comes_back(ends: list[int], tokens: list[int], open_end: bool) -> None:
    starts = [1, *(end + 1 for end in ends[:-1])]
    ends = [*ends[:-1], MAX_BATCH_SIZE] if open_end else ends
    ranges = from_triples(list(zip(starts, ends, tokens, strict=False)))
    assert from_short(Schedule(ranges).short()).ranges == ranges


def test_a_resource_of_another_version_is_no_crash() -> None:
    with pytest.raises(Failure, match="not understood"):
        schedule_of({"metadata": {}, "spec": {"schedule": [{"from": 1}]}})


def test_rows_appear_where_one_of_them_changes() -> None:
    left = Schedule(from_triples([(1, 4, 3), (5, 9, 1)]))
    right = Schedule(from_triples([(1, 6, 3), (7, 9, 1)]))
    found = list(rows([Column("A", left), Column("B", right)]))
    assert found == [("1-4", "3", "3"), ("5-6", "1", "3"), ("7 and more", "1", "1")]
    assert [differs(row) for row in found] == [False, True, False]


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-01-01T00:00:00Z", "2d"),
        ("2026-01-02T23:59:30Z", "30s"),
        ("2026-01-02T23:30:00Z", "30m"),
        ("2026-01-02T20:55:00.123456Z", "3h4m"),
        (None, "?"),
        ("nonsense", "?"),
        ("2027-01-01T00:00:00Z", "0s"),
    ],
)
def test_ages(time: Any, text: str) -> None:
    assert age(time, datetime(2026, 1, 3, tzinfo=UTC)).startswith(text)
