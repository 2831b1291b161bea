"""Which K comes next: one object, (batch size, what was measured) -> K. Deterministic, and knows nothing of vLLM.

`state` makes the policy of the schedule in use, one per engine core, and `scheduler` asks it once per step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from dsd_runtime.outcome import StepOutcome
from dsd_runtime.schedule import MAX_BATCH_SIZE, Lookup, ScheduleRange, Smoothing

SETTLE_STEPS: Final = 100
"""Steps in a row on the other side of a boundary after which the margin no longer holds K: no hovering any more."""


class Policy(Protocol):
    """Chooses the number of draft tokens per request for the next step."""

    def choose(self, batch_size: int, measured: StepOutcome | None) -> int:
        """K for a step with `batch_size` requests (1 or more); `measured` is the latest finished step, if any."""


class TablePolicy:
    """The schedule as it is written: K depends on the batch size alone."""

    def __init__(self, ranges: Sequence[ScheduleRange]) -> None:
        """`ranges` must be valid (`schedule.validate`)."""
        self._lookup = Lookup.of(ranges)

    def choose(self, batch_size: int, measured: StepOutcome | None) -> int:  # noqa: ARG002
        """K of the range that holds `batch_size`."""
        return self._lookup(batch_size)


@dataclass(frozen=True)
class Tier:
    """Neighbouring batch sizes with one K, and the sizes at which that K may be held: `low` to `high`, inclusive."""

    tokens: int
    low: int
    high: int


class SmoothedPolicy:
    """The schedule with inertia at its boundaries.

    Let T(b) be the schedule's K at batch size b, and a tier the longest run of batch sizes with one K. The policy holds
    a tier h, at first that of the first step. In a step with T(b) != K of h, K becomes T(b), and the tier of b is held,
    when both are true:

    - dwell: K was the same in at least the last `dwellSteps` steps, or has never changed;
    - margin: b is above end(h) + m(h+1) or below start(h) - m(h-1); or T has differed from the K of h in each of the
      last max(SETTLE_STEPS, dwellSteps) steps, so that the batch size has settled on the other side.

    m(n) for the neighbour n of h = min(ceil(marginPercent / 100 * s), floor((size(n) - 1) / 2)), with s the start of
    the upper one of the two and size(n) the number of batch sizes in n: the middle of every tier is beyond all margins.

    Hence: every K is T of this step or of an earlier one; K never changes more often than T does on the same batch
    sizes, nor sooner than `dwellSteps` steps after its last change; a size beyond the margin has its K at the latest
    after `dwellSteps` steps, any constant size after max(SETTLE_STEPS, dwellSteps). With both values 0 it is T.
    """

    def __init__(self, ranges: Sequence[ScheduleRange], smoothing: Smoothing) -> None:
        """`ranges` must be valid (`schedule.validate`)."""
        starts, tokens = merged(ranges)
        self._tier_at = Lookup(starts, tuple(range(len(starts))))
        self._tiers = tiers(starts, tokens, smoothing.margin_percent)
        self._dwell = smoothing.dwell_steps
        self._settle = max(SETTLE_STEPS, smoothing.dwell_steps)
        self._held: Tier | None = None
        self._steps_held = smoothing.dwell_steps
        self._steps_apart = 0

    def choose(self, batch_size: int, measured: StepOutcome | None) -> int:  # noqa: ARG002
        """K by the rule above."""
        wanted = self._tiers[self._tier_at(batch_size)]
        held = self._held or wanted
        if held.tokens == wanted.tokens:
            self._held, self._steps_apart = wanted, 0
        elif self._may_change(held, batch_size):
            self._held, self._steps_apart, self._steps_held = wanted, 0, 0
        else:
            self._held = held
            self._steps_apart += 1
        self._steps_held += 1
        return self._held.tokens

    def _may_change(self, held: Tier, batch_size: int) -> bool:
        beyond = not held.low <= batch_size <= held.high
        return self._steps_held >= self._dwell and (beyond or self._steps_apart >= self._settle)


def merged(ranges: Sequence[ScheduleRange]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(start, K) of each tier: a boundary between two ranges with the same K is none."""
    lookup = Lookup.of(ranges)
    changes = [i for i, k in enumerate(lookup.tokens) if i == 0 or k != lookup.tokens[i - 1]]
    return tuple(lookup.starts[i] for i in changes), tuple(lookup.tokens[i] for i in changes)


def tiers(starts: Sequence[int], tokens: Sequence[int], margin_percent: int) -> tuple[Tier, ...]:
    """The tiers with the margins around each."""
    edges = [*starts, MAX_BATCH_SIZE + 1]
    sizes = [end - start for start, end in pairwise(edges)]

    def margin(boundary: int, neighbour: int) -> int:
        return min(-(-starts[boundary] * margin_percent // 100), (sizes[neighbour] - 1) // 2)

    last = len(starts) - 1
    return tuple(
        Tier(
            tokens=k,
            low=starts[i] - margin(i, i - 1) if i > 0 else 1,
            high=edges[i + 1] - 1 + margin(i + 1, i + 1) if i < last else MAX_BATCH_SIZE,
        )
        for i, k in enumerate(tokens)
    )


def policy_of(ranges: Sequence[ScheduleRange], smoothing: Smoothing | None) -> Policy:
    """The policy of a valid schedule."""
    if smoothing is None or smoothing.off:
        return TablePolicy(ranges)
    return SmoothedPolicy(ranges, smoothing)
