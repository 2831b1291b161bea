"""From samples to a schedule: the best K at each concurrency, the ranges, the gain over another schedule. Pure.

Of the values of K that cannot be told from the fastest one, the smallest is taken: it drafts less, so it costs the
drafter less and wastes less when acceptance falls. A K counts as such a tie where the interval of its ratio to the
fastest includes 1 and the loss that was measured is small (`MAX_TIE_LOSS`): noise must not be an argument for a K that
looks far slower.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median
from typing import Final, Literal

from dsd_runtime.schedule import Lookup, Ranges, from_triples
from kubectl_dsd.profile.intervals import Interval, interval, ratio

Rounds = Mapping[int, Sequence[float]]
"""K -> throughput in each round."""

Samples = Mapping[int, Rounds]
"""Concurrency -> K -> throughput in each round."""

Certainty = Literal["clear", "tie", "uncertain"]
MAX_TIE_LOSS: Final = 0.05
"""Largest loss, as a share of the fastest K's throughput, that may pass for a tie."""

MAX_POSSIBLE_LOSS: Final = 0.1
"""Largest loss that the interval of a chosen tie may reach down to, without the choice being called uncertain."""


@dataclass(frozen=True)
class Verdict:
    """What the samples of one concurrency say."""

    concurrency: int
    fastest: int
    chosen: int
    ratios: Mapping[int, Interval]
    """K -> its throughput over that of the fastest K, paired by round."""
    ties: tuple[int, ...]
    """Other values of K that cannot be told from the fastest one and lose little."""
    open: tuple[int, ...]
    """Values of K that look much slower but are too noisy to be ruled out."""

    @property
    def certainty(self) -> Certainty:
        """`clear`: every other K is slower beyond its interval. `tie`: some are as good. `uncertain`: too noisy."""
        if self.open or self._wide or not self.ratios[self.fastest].known:
            return "uncertain"
        return "tie" if self.ties else "clear"

    def why(self) -> str:
        """The reason for the choice, in words."""
        if not self.ratios[self.fastest].known:
            return f"K={self.chosen} has the highest throughput of a single round: no interval is known"
        text = f"K={self.chosen} is the fastest, beyond the interval of every other K"
        if self.chosen != self.fastest:
            text = f"K={self.chosen} cannot be told from K={self.fastest} ({self._loss()}) and drafts less"
        elif self.ties:
            text = f"K={self.chosen} is the fastest and the smallest of those that cannot be told from it"
            text += f" ({_named(self.ties)})"
        elif self.open:
            text = f"K={self.chosen} was the fastest"
        doubt = f"; {_named(self.open)} cannot be ruled out" if self.open else ""
        return text + doubt + (": too noisy, more --rounds would tell" if self.certainty == "uncertain" else "")

    @property
    def _wide(self) -> bool:
        """Whether the chosen K may lose much: its interval says too little."""
        low = self.ratios[self.chosen].low
        return low is not None and low < 1 - MAX_POSSIBLE_LOSS

    def _loss(self) -> str:
        found = self.ratios[self.chosen]
        assert found.low is not None
        assert found.high is not None
        return f"{percent(found.middle)}, interval {percent(found.low)} to {percent(found.high)}"


def _named(ks: Sequence[int]) -> str:
    return ", ".join(f"K={k}" for k in ks)


def percent(factor: float) -> str:
    """A ratio as the change that it is: 0.98 as "-2.0 %"."""
    return f"{(factor - 1) * 100:+.1f} %"


def verdict(concurrency: int, rounds: Rounds) -> Verdict:
    """Judge one concurrency; every K must have the same rounds."""
    fastest = max(rounds, key=lambda k: (median(rounds[k]), -k))
    ratios = {k: ratio(values, rounds[fastest]) for k, values in rounds.items()}
    even = [k for k in sorted(rounds) if k != fastest and ratios[k].known and not ratios[k].below(1.0)]
    ties = tuple(k for k in even if ratios[k].middle >= 1 - MAX_TIE_LOSS)
    chosen = min((fastest, *ties))
    return Verdict(concurrency, fastest, chosen, ratios, ties, tuple(k for k in even if k not in ties))


def verdicts(samples: Samples) -> list[Verdict]:
    """Judge every concurrency, in ascending order."""
    return [verdict(concurrency, samples[concurrency]) for concurrency in sorted(samples)]


def schedule_of(chosen: Mapping[int, int], largest: int) -> Ranges:
    """Ranges from concurrency -> K: a K holds from above the concurrency before up to its own, the last up to
    `largest` at least; neighbours with one K are one range."""
    triples: list[tuple[int, int, int]] = []
    start = 1
    for concurrency in sorted(chosen):
        k = chosen[concurrency]
        end = max(largest, concurrency) if concurrency == max(chosen) else concurrency
        if triples and triples[-1][2] == k:
            triples[-1] = (triples[-1][0], end, k)
        else:
            triples.append((start, end, k))
        start = concurrency + 1
    return from_triples(triples)


def best_schedule(found: Sequence[Verdict], largest: int) -> Ranges:
    """The schedule of the verdicts."""
    return schedule_of({v.concurrency: v.chosen for v in found}, largest)


def same(first: Ranges, second: Ranges, samples: Samples) -> bool:
    """Whether two schedules use the same K at every concurrency that was measured."""
    one, other = Lookup.of(first), Lookup.of(second)
    return all(one(c) == other(c) for c in samples)


def gain(samples: Samples, present: Ranges) -> Interval | None:
    """Throughput of the best schedule over that of `present`, the geometric mean over the concurrencies.

    Each round is judged by the choice that the *other* rounds make, for a K that was chosen by a round's luck looks
    good in that round: so the gain is not flattered. None with fewer than three rounds, or where a K of `present` was
    not measured.
    """
    lookup = Lookup.of(present)
    rounds = min(len(values) for by_k in samples.values() for values in by_k.values())
    if rounds < 3 or any(lookup(c) not in by_k for c, by_k in samples.items()):
        return None
    return interval([_held_out(samples, lookup, i) for i in range(rounds)])


def _held_out(samples: Samples, present: Lookup, held: int) -> float:
    """The gain in round `held` of what the other rounds choose."""
    logs = []
    for concurrency, by_k in samples.items():
        others = {k: [v for i, v in enumerate(values) if i != held] for k, values in by_k.items()}
        chosen = verdict(concurrency, others).chosen
        logs.append(log(by_k[chosen][held] / by_k[present(concurrency)][held]))
    return exp(fmean(logs))
