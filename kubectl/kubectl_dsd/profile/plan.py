"""What a profile will do, and for how long: concurrencies, values of K, rounds. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from dsd_runtime.schedule import MAX_SPECULATIVE_TOKENS, Ranges
from kubectl_dsd.errors import Failure

SETTLE_SECONDS: Final = 2.5
"""Guess of what one cell takes beside its window: the schedule reaches the pods, requests start, the page follows."""

LARGEST_DEFAULT: Final = 64
"""Concurrency up to which a profile goes unless it is told."""

MOST: Final = 4096


@dataclass(frozen=True)
class Cell:
    """One measurement: this K at this concurrency, in this round (from 0)."""

    round: int
    concurrency: int
    k: int


@dataclass(frozen=True)
class Plan:
    """The sweep. `duration` is of one window, `warm_up` of the load before all of them, in seconds."""

    concurrencies: tuple[int, ...]
    ks: tuple[int, ...]
    rounds: int
    duration: float
    warm_up: float

    def cells(self) -> list[Cell]:
        """In the order of the measurement.

        All K run one after the other at a concurrency, so a drift of the machine hits them alike; each block begins
        with another K, so being first is nobody's advantage.
        """
        return [
            Cell(number, concurrency, k)
            for number in range(self.rounds)
            for turn, concurrency in enumerate(self.concurrencies)
            for k in rotated(self.ks, number + turn)
        ]

    def seconds(self, settle: float = SETTLE_SECONDS) -> float:
        """How long it takes, with `settle` seconds beside each window."""
        return self.warm_up + len(self.cells()) * (self.duration + settle)


def rotated(items: Sequence[int], by: int) -> list[int]:
    """The items in the same order, from another one on."""
    start = by % len(items)
    return [*items[start:], *items[:start]]


def parse_numbers(text: str, option: str, largest: int) -> tuple[int, ...]:
    """`1,2,4` as numbers, ascending and without repeats; raises UsageError that names the option."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdecimal() and int(part) <= largest for part in parts):
        raise click.UsageError(f"{option} {text!r} is no list of numbers up to {largest}; write it as {option} 1,2,4")
    return tuple(sorted({int(part) for part in parts}))


def concurrencies_of(text: str | None, max_num_seqs: int) -> tuple[int, ...]:
    """The concurrencies to measure: those asked for, else powers of two up to the engine's limit and 64."""
    if text is None:
        top = min(max_num_seqs, LARGEST_DEFAULT)
        powers = [2**i for i in range(top.bit_length()) if 2**i <= top]
        return tuple(powers)
    found = parse_numbers(text, "--concurrency", MOST)
    if found[0] < 1:
        raise click.UsageError("--concurrency 0 is no load; the smallest is 1")
    if found[-1] > max_num_seqs:
        raise Failure(
            f"--concurrency {found[-1]} is more than the engine runs at once ({max_num_seqs}); the rest would wait",
            f"Stay at {max_num_seqs}, or raise spec.engine.maxNumSeqs (restarts the pods).",
        )
    return found


def tokens_of(text: str | None, envelope: Mapping[str, Any], present: Ranges) -> tuple[int, ...]:
    """The values of K to measure: those asked for, else what the engine prepared and what the schedule uses now.

    Raises Failure for a K that the engine cannot honour.
    """
    if text is None:
        return tuple(sorted({*envelope.get("preparedTokens", ()), *used_by(present)}))
    found = parse_numbers(text, "--k", MAX_SPECULATIVE_TOKENS)
    allowed = set(envelope.get("allowedTokens", ()))
    if refused := [k for k in found if k not in allowed]:
        names = ", ".join(map(str, refused))
        listed = ", ".join(map(str, sorted(allowed)))
        raise Failure(f"--k {names}: this engine cannot use that K", f"It can use {listed}.")
    return found


def used_by(ranges: Iterable[Any]) -> set[int]:
    """The values of K in a schedule."""
    return {r.num_speculative_tokens for r in ranges}


def duration_text(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
