"""What every campaign starts from: a seed that can be set and is always said, and a line now and then on long work."""

import os
import random
import sys
import time
from typing import Final

SEED_ENV: Final = "DSD_FUZZ_SEED"
PROGRESS_SECONDS: Final = 15.0


def seed(default: int | None = None) -> int:
    """The campaign's seed: DSD_FUZZ_SEED, else the default, else a new one for each run."""
    given = os.environ.get(SEED_ENV)
    if given:
        return int(given)
    return random.SystemRandom().randrange(2**32) if default is None else default


def again(number: int) -> str:
    """How to repeat a campaign; belongs into every failure."""
    return f"(again with {SEED_ENV}={number})"


class Progress:
    """Says to the standard error stream how far a campaign is; pytest shows it with -s, or where the test fails."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._started = self._said = time.monotonic()

    def at(self, done: int, more: str = "") -> None:
        """`done` of the total are done."""
        now = time.monotonic()
        if now - self._said >= PROGRESS_SECONDS:
            self._said = now
            print(
                f"{self._what}: {done} of {self._total} after {now - self._started:.0f} s {more}",
                file=sys.stderr,
                flush=True,
            )
