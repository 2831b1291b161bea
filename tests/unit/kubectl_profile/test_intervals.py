"""Confidence intervals: known answers, and what must hold for all values."""

from itertools import pairwise
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dsd.profile.intervals import interval, ratio, t_quantile

positive = st.floats(0.1, 1e5)


def test_the_quantiles_are_those_of_the_tables() -> None:
    published = {1: 12.706, 4: 2.776, 9: 2.262, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980}

    assert {n: round(t_quantile(n), 3) for n in published} == published


def test_the_quantiles_fall_and_never_below_the_normal_one() -> None:
    values = [t_quantile(n) for n in range(1, 200)]

    assert all(a >= b for a, b in pairwise(values))
    assert values[-1] > 1.9599


def test_a_known_interval() -> None:
    # Logarithms 0, 1, 2: mean 1, sd 1; t of two degrees 4.303, so 1 ± 4.303 / sqrt(3).
    found = interval([1.0, exp(1), exp(2)])

    assert found.middle == pytest.approx(exp(1))
    assert found.low is not None
    assert found.high is not None
    assert (log(found.low), log(found.high)) == pytest.approx((1 - 2.4844, 1 + 2.4844), abs=1e-3)


def test_one_round_has_no_interval() -> None:
    found = interval([3.0])

    assert not found.known
    assert not found.above(1.0)
    assert not found.below(9.0)


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [-1.0]])
def test_what_is_not_positive_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        interval(values)


@given(st.lists(positive, min_size=2, max_size=12))
def test_the_median_is_always_inside(values: list[float]) -> None:
    found = interval(values)

    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.middle <= found.high


@given(st.lists(positive, min_size=2, max_size=8), st.floats(0.5, 2.0))
def test_a_slow_round_cancels_out_of_a_ratio(values: list[float], factor: float) -> None:
    found = ratio([value * factor for value in values], values)

    assert found.low == pytest.approx(factor, rel=1e-6)
    assert found.high == pytest.approx(factor, rel=1e-6)


def test_rounds_that_are_missing_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio([1.0, 2.0], [1.0])
