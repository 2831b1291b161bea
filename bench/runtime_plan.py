"""How much the runtime's benchmarks do, and how far they are: sizes of a full and of a quick run, progress."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from bench.runtime_workloads import CONCURRENCIES

Item = TypeVar("Item")


@dataclass(frozen=True)
class Plan:
    """The sizes of a run."""

    concurrencies: tuple[int, ...] = CONCURRENCIES
    rounds: int = 5
    profile_rounds: int = 2
    shortening: int = 1
    swap_seconds: float = 60.0


FULL: Final = Plan()
QUICK: Final = Plan(concurrencies=(1, 4), rounds=1, profile_rounds=1, shortening=4, swap_seconds=2.0)
"""Shows that everything works, in about two minutes; its numbers are worth nothing."""

TOKENS: Final = {1: 96, 2: 80, 4: 64, 8: 56, 16: 40, 32: 40}
"""Tokens of a request at each concurrency: 2 to 4 seconds a run on two cores."""


def tokens(plan: Plan, concurrency: int) -> int:
    """Tokens of a request in the sweep."""
    return TOKENS[concurrency] // plan.shortening


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """The items in the same order, from another one on: in each round another configuration comes first."""
    start = by % len(items)
    return [*items[start:], *items[:start]]


class Progress:
    """Says what is done and how long the rest may take, from the runs so far."""

    def __init__(self, part: str, total: int) -> None:
        self._part, self._total, self._done = part, total, 0
        self._started = time.monotonic()

    def step(self, text: str) -> None:
        """One more run is done."""
        self._done += 1
        passed = time.monotonic() - self._started
        left = passed / self._done * (self._total - self._done)
        print(f"{self._part} {self._done}/{self._total}, {left / 60:.1f} min left: {text}", flush=True)
