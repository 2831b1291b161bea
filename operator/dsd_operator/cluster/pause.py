"""Leaving the API server in peace for as long as it asks: one allowance for all requests of the operator.

The API server counts requests by user, and all of ours are the same user's. What waits for one resource alone would be
cut short by the next event, and the other resources would go on asking.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dsd_operator.cluster.errors import ApiError, Retry

LONGEST_SECONDS: Final = 30.0
"""However long it asks for: a mistake in a proxy must not stop the operator for long."""

_ASKS: Final = frozenset({429, 503})
"""Too many requests, and a server that starts or stops. Other answers with Retry-After are about one object."""

_SPREAD: Final = 0.2
"""Share by which the ends of a pause are spread, so that not all come back at once."""


@dataclass
class Pause:
    """The pause that was asked for last."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    spread: Callable[[], float] = random.random
    _until: float = float("-inf")

    def check(self) -> None:
        """Raise Retry, with the time that is left, while it lasts."""
        left = self._until - self.clock()
        if left > 0:
            message = f"the API server asked for a pause, of which {left:.0f} s are left"
            raise Retry(429, message, left * (1 + _SPREAD * self.spread()))

    def note(self, error: ApiError) -> None:
        """The API server answered with this."""
        if isinstance(error, Retry) and error.code in _ASKS and error.delay:
            self._until = max(self._until, self.clock() + min(error.delay, LONGEST_SECONDS))
