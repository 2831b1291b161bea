"""What each K earned, read from the engine's own metrics: the growth between two readings, as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from tools.demo import terminal
from tools.testbed.metrics import by_label, growth

_COUNTERS: Final = (
    "dsd_steps_total",
    "dsd_emitted_tokens_total",
    "dsd_draft_tokens_total",
    "dsd_accepted_tokens_total",
)


@dataclass(frozen=True)
class Reading:
    """The four counters by K at one moment."""

    counters: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, text: str) -> Self:
        """Take a reading from a pod's Prometheus text."""
        return cls({name: by_label(text, name, "k") for name in _COUNTERS})

    def since(self, before: "Reading") -> "Reading":
        """What grew since `before`."""
        return Reading({name: growth(before.counters[name], self.counters[name]) for name in _COUNTERS})


def show(reading: Reading) -> None:
    """Print one row for each K that was verified."""
    steps = reading.counters["dsd_steps_total"]
    rows = [_row(k, reading) for k in sorted(steps, key=int)]
    terminal.table(("K", "steps", "tokens", "drafted", "accepted", "accepted %", "tokens/step"), rows)


def _row(k: str, reading: Reading) -> list[str]:
    steps, emitted, drafted, accepted = (reading.counters[name].get(k, 0.0) for name in _COUNTERS)
    share = f"{100 * accepted / drafted:.0f}" if drafted else "-"
    per_step = f"{emitted / steps:.2f}" if steps else "-"
    return [k, f"{steps:.0f}", f"{emitted:.0f}", f"{drafted:.0f}", f"{accepted:.0f}", share, per_step]
