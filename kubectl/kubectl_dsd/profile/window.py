"""One window of a measurement: from what engines counted and clients got to a sample, and what is odd about it. Pure.

Tokens are the engine's own (`dsd_emitted_tokens_total`); what the clients got in the same time is the check.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kubectl_dsd.profile.plan import Cell
from kubectl_dsd.top.rates import Rates, combined
from kubectl_dsd.top.reading import EMITTED, PRICED_SECONDS, PRICED_STEPS, Growth

EDGE_SECONDS: Final = 0.5
"""How far the clients' view of a window may lie from the engine's: the page follows it by 0.2 s and a step, and what
clients get comes through a tunnel."""

TOLERANCE: Final = 0.05
"""Share of tokens, or of the concurrency, that may be off without a word."""

BATCH_TOLERANCE: Final = 0.15
"""Share of the concurrency that the mean batch may be off: between two requests of a client a step or two are short."""


Kind = Literal["shared", "clients", "k", "batch"]


@dataclass(frozen=True)
class Remark:
    """Something odd about a window; `kind` is the same for the same cause."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Window:
    """What was seen between the two edges of a window; one growth per pod, over that pod's own time."""

    cell: Cell
    growths: Sequence[Growth]
    engines: int
    """Engine cores of all pods together; each had `cell.concurrency` requests."""
    client_tokens: int
    """Tokens that reached our clients in the window."""


@dataclass(frozen=True)
class Sample:
    """What one window says. Rates are per engine core."""

    cell: Cell
    seconds: float
    tokens_per_second: float
    rates: Rates
    step_milliseconds: float | None
    """Mean time of the steps that only decode, where one K explains it."""
    at_k: float
    """Share of the tokens that came from steps which verified the wanted K."""
    engine_tokens: float
    client_tokens: int
    remarks: tuple[Remark, ...]


def sample(window: Window) -> Sample:
    """Evaluate a window; raises ValueError where the engines emitted nothing."""
    found = combined(list(window.growths))
    tokens = sum(g.total(EMITTED) for g in window.growths)
    if tokens <= 0:
        raise ValueError("the engines emitted no token")
    k = str(window.cell.k)
    at_k = sum(g.total(EMITTED, k=k) for g in window.growths) / tokens
    steps = sum(g.total(PRICED_STEPS, k=k) for g in window.growths)
    seconds = sum(g.total(PRICED_SECONDS, k=k) for g in window.growths)
    return Sample(
        cell=window.cell,
        seconds=found.seconds,
        tokens_per_second=found.tokens_per_second / window.engines,
        rates=found,
        step_milliseconds=1000 * seconds / steps if steps else None,
        at_k=at_k,
        engine_tokens=tokens,
        client_tokens=window.client_tokens,
        remarks=tuple(_remarks(window, found, tokens, at_k)),
    )


def _remarks(window: Window, found: Rates, tokens: float, at_k: float) -> Iterator[Remark]:
    batch, wanted = found.batch_size or 0.0, window.cell.concurrency
    if batch > wanted * (1 + TOLERANCE):
        yield Remark("shared", f"steps had {batch:.1f} requests instead of {wanted}: other clients' requests ran too")
    if batch < wanted * (1 - BATCH_TOLERANCE):
        yield Remark("batch", f"steps had {batch:.1f} requests instead of {wanted}: some waited, or ended at once")
    if at_k < 1 - 2 * TOLERANCE:
        yield Remark("k", f"only {at_k:.0%} of the tokens came from steps with the K that was set")
    difference = (tokens - window.client_tokens) / tokens
    if abs(difference) > TOLERANCE + EDGE_SECONDS / found.seconds:
        more = "fewer" if difference > 0 else "more"
        text = f"clients got {abs(difference):.0%} {more} tokens than the engines emitted"
        yield Remark("clients", f"{text}: they lag behind (a slow tunnel or machine), or others took them")
