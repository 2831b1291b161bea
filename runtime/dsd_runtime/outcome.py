"""What one engine step did: the record that `scheduler` makes, `metrics` counts and `policy` may learn from. Pure."""

from dataclasses import dataclass
from typing import Final

MAX_POSITIONS: Final = 16
"""Draft positions that have a series of their own; deeper ones share one."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step that had requests.

    `chosen` is the K that the drafter was asked for in this step, `verified` the K whose drafts this step verified: the
    one chosen a step before, or 0 where no request was decoding. `seconds` is the time since the step before ended,
    only where it is the price of one K: a decode-only step whose chosen and verified K agree, with no idle time in it.
    """

    batch_size: int
    chosen: int
    verified: int
    seconds: float | None
    emitted_tokens: int
    draft_tokens: int
    accepted_tokens: int
    draft_tokens_per_pos: tuple[int, ...]
    accepted_tokens_per_pos: tuple[int, ...]
