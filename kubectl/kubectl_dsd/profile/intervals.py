"""Confidence intervals for a few rounds of a measurement. Pure.

Throughputs vary by factors, so all is done on logarithms: the interval is that of the mean logarithm by Student's t
(Student, "The probable error of a mean", Biometrika 6, 1908), 95 %, two-sided. Two values of K are compared by the
ratios of the same round (paired), so that what makes a whole round slow cancels out; Georges, Buytaert and Eeckhout,
"Statistically rigorous Java performance evaluation", OOPSLA 2007, argue for t at the few repeats that one can afford.
A bootstrap of three to five values is too narrow, hence none. The value in the middle is the median.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, median, stdev
from typing import Final

_T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_Z: Final = 1.959964


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % interval. With fewer than two rounds both ends are unknown (None)."""

    middle: float
    low: float | None = None
    high: float | None = None

    @property
    def known(self) -> bool:
        """Whether there were rounds enough for an interval."""
        return self.low is not None

    def above(self, value: float) -> bool:
        """Whether the whole interval is above `value`; False where it is unknown."""
        return self.low is not None and self.low > value

    def below(self, value: float) -> bool:
        """Whether the whole interval is below `value`; False where it is unknown."""
        return self.high is not None and self.high < value


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t: a table up to 30, then the first terms of Abramowitz & Stegun 26.7.5."""
    if degrees < 1:
        raise ValueError("an interval needs two values at least")
    if degrees <= len(_T):
        return _T[degrees - 1]
    return _Z + (_Z**3 + _Z) / (4 * degrees) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * degrees**2)


def interval(values: Sequence[float]) -> Interval:
    """Median and interval of positive values, one per round; raises ValueError of none, or of one that is not."""
    if not values or min(values) <= 0:
        raise ValueError("an interval is of positive values")
    middle = median(values)
    if len(values) < 2:
        return Interval(middle)
    logs = [log(value) for value in values]
    half = t_quantile(len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    centre = fmean(logs)
    # Of skewed values the median may lie outside the interval of the mean: it is always told, so it is always inside.
    return Interval(middle, min(exp(centre - half), middle), max(exp(centre + half), middle))


def ratio(first: Sequence[float], second: Sequence[float]) -> Interval:
    """first / second, round by round; raises ValueError where a round is missing."""
    return interval([a / b for a, b in zip(first, second, strict=True)])
