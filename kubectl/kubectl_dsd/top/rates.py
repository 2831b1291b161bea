"""What two looks at an engine say about the time between them. Pure; `samples` takes the looks."""

from dataclasses import dataclass

from kubectl_dsd.top.reading import ACCEPTED, BATCH_SUM, DRAFTED, EMITTED, STEPS, Growth


@dataclass(frozen=True)
class Rates:
    """Rates over the time between two looks; None where nothing happened that it could be computed from."""

    seconds: float
    tokens_per_second: float
    steps_per_second: float
    tokens_per_step: float | None
    """Tokens that leave the engine per step, all requests of the step together."""
    tokens_per_request: float | None
    """The same for one request of the step: 1 without speculation, up to K + 1 with it."""
    batch_size: float | None
    """Requests per step."""
    acceptance: float | None
    """Share of the draft tokens that was accepted."""


def rates(growth: Growth) -> Rates:
    """The rates of one engine process."""
    return combined([growth])


def combined(growths: list[Growth]) -> Rates:
    """The rates of several engines together: what each does per second is added, the rest is of all their steps."""
    steps, emitted, requests = (sum(g.total(name) for g in growths) for name in (STEPS, EMITTED, BATCH_SUM))
    return Rates(
        seconds=max(g.seconds for g in growths),
        tokens_per_second=sum(_per_second(g, EMITTED) for g in growths),
        steps_per_second=sum(_per_second(g, STEPS) for g in growths),
        tokens_per_step=ratio(emitted, steps),
        tokens_per_request=ratio(emitted, requests),
        batch_size=ratio(requests, steps),
        acceptance=ratio(sum(g.total(ACCEPTED) for g in growths), sum(g.total(DRAFTED) for g in growths)),
    )


def _per_second(growth: Growth, name: str) -> float:
    return growth.total(name) / growth.seconds if growth.seconds > 0 else 0.0


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None of nothing."""
    return part / whole if whole else None
