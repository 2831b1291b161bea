"""Hypothesis strategies for schedules."""

from hypothesis import strategies as st

from dsd_runtime.schedule import MAX_MARGIN_PERCENT, MAX_RANGES, Ranges, Smoothing, from_triples

MAXIMA = st.integers(1, 128)
"""The drafter's maximum K."""

SMALL = st.integers(-2, 12)


@st.composite
def valid_ranges(draw: st.DrawFn, maximum: int) -> Ranges:
    """Any schedule that `validate` accepts for `maximum`, with gaps, single sizes and rising K."""
    triples = []
    start = 1
    for _ in range(draw(st.integers(1, MAX_RANGES))):
        end = start + draw(st.integers(0, 40))
        triples.append((start, end, draw(st.integers(0, maximum))))
        start = end + 1 + draw(st.integers(0, 30))
    return from_triples(triples)


TABLES = st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=0, max_size=6)
"""Any table of small integers: mostly wrong in one way or another, often nearly right."""


@st.composite
def nearly_valid_tables(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """A valid table with at most one number changed, or two rows swapped."""
    rows = [list(r.triple()) for r in draw(valid_ranges(draw(st.integers(1, 6))))]
    if draw(st.booleans()):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, 2))] += draw(st.integers(-3, 3))
    if draw(st.booleans()):
        i, j = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, len(rows) - 1))
        rows[i], rows[j] = rows[j], rows[i]
    return [(start, end, k) for start, end, k in rows]


def smoothings() -> st.SearchStrategy[Smoothing]:
    """Any smoothing, mostly small dwells, so that short loads see their end."""
    dwell = st.one_of(st.integers(0, 12), st.integers(0, 150))
    return st.builds(Smoothing, dwell_steps=dwell, margin_percent=st.integers(0, MAX_MARGIN_PERCENT))
