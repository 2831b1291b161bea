"""Runs the plan: sets K, loads the engines, takes each window. What has been measured survives an interruption."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dsd_runtime.schedule import Ranges, from_triples
from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.engines import Engines
from kubectl_dsd.profile.load import Load
from kubectl_dsd.profile.plan import Cell, Plan
from kubectl_dsd.profile.progress import Progress
from kubectl_dsd.profile.prompts import Prompt
from kubectl_dsd.profile.streams import Settings
from kubectl_dsd.profile.window import Sample, Window, sample
from kubectl_dsd.top.reading import growth

LEAD_IN: Final = 0.3
"""Seconds between the last client's first token and the window: the first steps still compute prompts."""

_ROUND_STRIDE: Final = 7
"""By how many prompts a round begins further on. Odd, so that rounds do not all begin with the same few."""


@dataclass
class Sweep:
    """One measurement of one deployment; `samples` grows while it runs."""

    use: Callable[[Ranges], None]
    """Sets a schedule, and returns when every engine uses it and nothing else has changed; else raises Failure."""
    engines: Engines
    prompts: Sequence[Prompt]
    settings: Settings
    largest: int
    samples: list[Sample] = field(default_factory=list)

    def run(self, plan: Plan, progress: Progress) -> None:
        """Measure all cells; raises Failure, and whatever interrupts it."""
        self._warm_up(plan, progress)
        for cell in plan.cells():
            self.use(whole_range(cell.k, self.largest))
            self.engines.wait_idle()
            found = self._measure(cell, plan.duration)
            self.samples.append(found)
            progress.measured(found)

    def _warm_up(self, plan: Plan, progress: Progress) -> None:
        """Fill caches, and let kernels compile, with the largest K and the most requests."""
        if plan.warm_up <= 0:
            return
        progress.say("warming up")
        self.use(whole_range(plan.ks[-1], self.largest))
        with Load(self.engines.addresses, plan.concurrencies[-1], self.prompts, self.settings) as load:
            load.wait_started()
            load.wait(plan.warm_up)

    def _measure(self, cell: Cell, duration: float) -> Sample:
        """One window. Every K of a round and concurrency begins with the same prompts in the same order."""
        first = cell.round * _ROUND_STRIDE
        with Load(self.engines.addresses, cell.concurrency, self.prompts, self.settings, first) as load:
            load.wait_started()
            load.wait(LEAD_IN)
            before, got_before = self.engines.edges(), load.tokens
            load.wait(max(0.0, duration - (time.monotonic() - before[0].at)))
            after, got = self.engines.edges(), load.tokens - got_before
            load.check()
        growths = [growth(b, a) for b, a in zip(before, after, strict=True)]
        try:
            return sample(Window(cell, growths, self.engines.cores, got))
        except ValueError as error:
            raise Failure(
                f"at concurrency {cell.concurrency} with K={cell.k} the engines counted no token in {duration:.0f} s",
                "Use a longer --duration; `kubectl dsd status` says whether metrics are missing.",
            ) from error


def whole_range(k: int, largest: int) -> Ranges:
    """A schedule with one K for every batch size."""
    return from_triples([(1, largest, k)])
