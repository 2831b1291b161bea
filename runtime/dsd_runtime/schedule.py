"""Schedules: ranges of batch sizes and the number of speculative tokens (K) for each.

Pure: no I/O, no vLLM. The semantics are those of vLLM's `num_speculative_tokens_per_batch_size`
(`vllm/v1/spec_decode/dynamic/utils.py`), with one deliberate difference: a K above the maximum is an error here,
where vLLM clamps it without a word. `protocol` carries these models over HTTP and in the config file, `support`
says which K a method can honour, the operator generates its CRD rules from the same limits.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_RANGES: Final = 32
"""Most ranges one schedule may have; bounds the cost of the CRD's overlap rule and of the metric labels."""

MAX_SPECULATIVE_TOKENS: Final = 128
"""Largest K anywhere; bounds the `k` label of the metrics."""

MAX_BATCH_SIZE: Final = 2**31 - 1
"""Largest batch size a range may name (int32, as Kubernetes stores it)."""

MAX_DWELL_STEPS: Final = 10_000
"""Longest dwell; at 10 ms a step more than a minute and a half, in which the schedule would look stuck."""

MAX_MARGIN_PERCENT: Final = 50
"""Widest margin; with more, a K would be held at twice the batch size that it was chosen for."""

Triple = tuple[int, int, int]
"""vLLM's spelling of one range: (start, end, K), both ends inclusive."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input: where (`field`, in the input's own spelling) and what to do about it."""

    field: str
    message: str


class ScheduleRange(BaseModel):
    """One inclusive range of batch sizes (requests scheduled in a step) and its K (draft tokens per request)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True)

    start_batch_size: Annotated[
        int,
        Field(ge=1, le=MAX_BATCH_SIZE, description="Smallest batch size of the range; 1 in the first range."),
    ]
    end_batch_size: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_BATCH_SIZE,
            description="Largest batch size of the range, itself included. It may go beyond what the engine can reach.",
        ),
    ]
    num_speculative_tokens: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_SPECULATIVE_TOKENS,
            description="K: tokens drafted per request in this range, up to the drafter's maximum. 0 drafts nothing.",
        ),
    ]

    def triple(self) -> Triple:
        """This range as vLLM writes it."""
        return (self.start_batch_size, self.end_batch_size, self.num_speculative_tokens)


Ranges = tuple[ScheduleRange, ...]


class Smoothing(BaseModel):
    """How reluctantly K follows a batch size that hovers around a boundary of the schedule; `policy` has the rule.

    Absent, or with both values 0, it is off: each step uses exactly the K of its range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True)

    dwell_steps: Annotated[
        int,
        Field(ge=0, le=MAX_DWELL_STEPS, description="After a change, K stays for at least so many engine steps."),
    ] = 0
    margin_percent: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_MARGIN_PERCENT,
            description=(
                "How far beyond a boundary between two values of K, in percent of its batch size and rounded up, the "
                "batch size must be for K to change at once. Within that it changes after 100 steps (or dwellSteps, if "
                "more) on that side."
            ),
        ),
    ] = 0

    @property
    def off(self) -> bool:
        """Whether this leaves the schedule as it is written."""
        return self.dwell_steps == 0 and self.margin_percent == 0


def from_triples(triples: Iterable[Sequence[int]]) -> Ranges:
    """Convert vLLM's `[[start, end, K], …]`; raises ValueError on a row that is not three integers in range."""
    return tuple(
        ScheduleRange(start_batch_size=start, end_batch_size=end, num_speculative_tokens=k) for start, end, k in triples
    )


def to_triples(ranges: Iterable[ScheduleRange]) -> list[list[int]]:
    """Convert to vLLM's `[[start, end, K], …]`, ready for JSON."""
    return [list(r.triple()) for r in ranges]


def validate(ranges: Sequence[ScheduleRange], max_speculative_tokens: int) -> list[Problem]:
    """Everything wrong with `ranges` for an engine started with `max_speculative_tokens`; empty when valid."""
    if not ranges:
        return [Problem("ranges", "a schedule needs at least one range; to switch speculation off use K=0")]
    if len(ranges) > MAX_RANGES:
        return [Problem("ranges", f"{len(ranges)} ranges; at most {MAX_RANGES} are allowed")]
    problems = [p for i, r in enumerate(ranges) for p in _range_problems(i, r, max_speculative_tokens)]
    if ranges[0].start_batch_size != 1:
        problems.append(
            Problem("ranges[0].startBatchSize", "the first range must start at 1, so that every batch size has a K")
        )
    problems += [p for i in range(1, len(ranges)) for p in _order_problems(i, ranges[i - 1], ranges[i])]
    return problems


def _range_problems(i: int, r: ScheduleRange, max_speculative_tokens: int) -> list[Problem]:
    problems = []
    if r.start_batch_size > r.end_batch_size:
        problems.append(
            Problem(f"ranges[{i}]", f"startBatchSize {r.start_batch_size} is above endBatchSize {r.end_batch_size}")
        )
    if r.num_speculative_tokens > max_speculative_tokens:
        problems.append(
            Problem(
                f"ranges[{i}].numSpeculativeTokens",
                f"K={r.num_speculative_tokens} is above the maximum of {max_speculative_tokens} that the engine was "
                "started with; lower it, or raise the drafter's numSpeculativeTokens, which restarts the engine",
            )
        )
    return problems


def _order_problems(i: int, previous: ScheduleRange, current: ScheduleRange) -> list[Problem]:
    if current.start_batch_size > previous.end_batch_size:
        return []
    return [
        Problem(
            f"ranges[{i}].startBatchSize",
            f"{current.start_batch_size} is not above the end of the range before it ({previous.end_batch_size}); "
            "ranges must ascend and must not overlap",
        )
    ]


@dataclass(frozen=True)
class Lookup:
    """Batch size -> K for one validated schedule. Gaps and sizes above the last range carry the K before them.

    Works for any batch size from 1, so it cannot run past an end as a dense list would (vLLM's engine dies of that).
    """

    starts: tuple[int, ...]
    tokens: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Sequence[ScheduleRange]) -> "Lookup":
        """Build from ranges that `validate` found nothing wrong with."""
        return cls(
            tuple(r.start_batch_size for r in ranges),
            tuple(r.num_speculative_tokens for r in ranges),
        )

    def __call__(self, batch_size: int) -> int:
        """K for `batch_size` requests scheduled in a step (1 or more)."""
        return self.tokens[bisect_right(self.starts, batch_size) - 1]


def schedule_hash(ranges: Sequence[ScheduleRange], smoothing: Smoothing | None = None) -> str:
    """Short content hash (16 hex digits of SHA-256 over the canonical form), the same on both sides.

    The canonical form is the triples alone where smoothing is off, whichever way that is spelled.
    """
    content: list[Any] = to_triples(ranges)
    if smoothing is not None and not smoothing.off:
        content = [content, smoothing.model_dump()]
    canonical = json.dumps(content, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def default_prepared_tokens(max_speculative_tokens: int) -> tuple[int, ...]:
    """K values to prepare (capture) at start: all up to a maximum of 4, else 0, 1, half rounded up, and the maximum.

    Each prepared K costs capture time and graph memory on a GPU, hence not all of them for a large maximum.
    """
    if max_speculative_tokens <= 4:
        return tuple(range(max_speculative_tokens + 1))
    return tuple(sorted({0, 1, (max_speculative_tokens + 1) // 2, max_speculative_tokens}))


def superset_triples(prepared: Sequence[int], max_num_seqs: int) -> list[Triple]:
    """A start-up table that makes vLLM prepare every K in `prepared` at nearly every batch size.

    vLLM sizes the graphs of a K by the widest batch that uses it, so each K gets one batch size at the top of the
    range: the largest K the widest tier, the smaller ones the last sizes. With fewer sizes than values the largest
    values win.
    """
    tokens = sorted(set(prepared), reverse=True)[:max_num_seqs]
    first_end = max_num_seqs - len(tokens) + 1
    tail = [(first_end + i, first_end + i, k) for i, k in enumerate(tokens[1:], start=1)]
    return [(1, first_end, tokens[0]), *tail]
