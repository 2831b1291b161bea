"""Which K comes next: one pure object, (batch size, what was measured) -> K. Knows nothing of vLLM.

`state` holds the policy of the schedule in use, `scheduler` asks it once per step. Today the table is the only policy.
"""

from collections.abc import Sequence
from typing import Protocol

from dsd_runtime.outcome import StepOutcome
from dsd_runtime.schedule import Lookup, ScheduleRange


class Policy(Protocol):
    """Chooses the number of draft tokens per request for the next step."""

    def choose(self, batch_size: int, measured: StepOutcome | None) -> int:
        """K for a step with `batch_size` requests (1 or more); `measured` is the latest finished step, if any."""


class TablePolicy:
    """The schedule as it is written: K depends on the batch size alone."""

    def __init__(self, ranges: Sequence[ScheduleRange]) -> None:
        """`ranges` must be valid (`schedule.validate`)."""
        self._lookup = Lookup.of(ranges)

    def choose(self, batch_size: int, measured: StepOutcome | None) -> int:  # noqa: ARG002
        """K of the range that holds `batch_size`."""
        return self._lookup(batch_size)
