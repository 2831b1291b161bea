"""What a DSDDeployment asks for, read from the plain object. Pure.

One of another version may hold more than this command knows, and one from before the CRD's rules less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dsd_runtime.schedule import MAX_BATCH_SIZE, Ranges, ScheduleRange, Smoothing, schedule_hash
from kubectl_dsd.errors import Failure


@dataclass(frozen=True)
class Schedule:
    """Ranges and smoothing, as the resource, a pod or a file has them."""

    ranges: Ranges
    smoothing: Smoothing | None = None

    @property
    def hash(self) -> str:
        """The same that engines and the operator show."""
        return schedule_hash(self.ranges, self.smoothing)

    def short(self) -> str:
        """The ranges as `schedule set` takes them: 1-8:3,9-:1."""
        return ",".join(f"{r.start_batch_size}-{_end(r)}:{r.num_speculative_tokens}" for r in self.ranges)

    def document(self) -> dict[str, Any]:
        """As a schedule file, which `schedule set -f` and dsd-serve take."""
        found = self.data()
        del found["hash"]
        return found

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        smoothing = {} if self.smoothing is None else {"smoothing": self.smoothing.model_dump(by_alias=True)}
        return {"hash": self.hash, "ranges": [r.model_dump(by_alias=True) for r in self.ranges], **smoothing}


def _end(row: ScheduleRange) -> str:
    """Empty for the largest number there is: the range is open."""
    return "" if row.end_batch_size >= MAX_BATCH_SIZE else str(row.end_batch_size)


def schedule_of(deployment: Mapping[str, Any]) -> Schedule:
    """`spec.schedule` and `spec.smoothing`; raises Failure where they cannot be understood."""
    spec = deployment.get("spec") or {}
    return _schedule(spec.get("schedule") or (), spec.get("smoothing"), "the deployment's schedule")


def engine_schedule(state: Mapping[str, Any]) -> Schedule:
    """The schedule in an engine's status; raises Failure."""
    return _schedule(state.get("ranges") or (), state.get("smoothing"), "what the engine answers")


def _schedule(rows: Any, smoothing: Any, what: str) -> Schedule:
    try:
        ranges = tuple(ScheduleRange.model_validate(row) for row in rows)
        found = Smoothing.model_validate(smoothing) if smoothing else None
    except (ValidationError, TypeError) as error:
        raise Failure(f"{what} is not understood: {error}", "Is this command older than the operator?") from error
    return Schedule(ranges, None if found is None or found.off else found)
