"""Is the operator alive, is it ready? Answers for the kubelet's probes, see `server`."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from dsd_operator.reconcile.queue import Key
from dsd_operator.reconcile.watches import Watches

BEAT_SECONDS: Final = 1.0
LATE_SECONDS: Final = 30.0
"""A loop that is blocked for this long does not serve its watches."""

STUCK_SECONDS: Final = 300.0
"""Every call in a pass is bounded; a pass of minutes hangs."""


@dataclass
class Health:
    """Collects the signs of life."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    watches: Watches
    longest_pass: Callable[[], float]
    _beat: float = field(default=0.0)
    _first: set[Key] | None = None

    def __post_init__(self) -> None:
        self._beat = self.clock()

    async def beat(self) -> None:
        """The loop's heartbeat; runs until cancelled."""
        while True:
            self._beat = self.clock()
            await asyncio.sleep(BEAT_SECONDS)

    def expect(self, keys: Iterable[Key]) -> None:
        """Ready once each of these has had its first pass."""
        self._first = set(keys)

    def finished(self, key: Key) -> None:
        """The key had a pass."""
        if self._first:
            self._first.discard(key)

    def faults(self) -> list[str]:
        """What is wrong; empty while alive."""
        late, longest = self.clock() - self._beat, self.longest_pass()
        silent = self.watches.silent()
        return [
            *([f"the event loop was blocked for {late:.0f} s"] if late > LATE_SECONDS else []),
            *([f"a reconcile pass has been running for {longest:.0f} s"] if longest > STUCK_SECONDS else []),
            *([f"no event came for {len(silent)} changed objects, among them {silent[0]}"] if silent else []),
        ]

    def unready(self) -> str | None:
        """Why the operator is not ready yet; None when it is."""
        if self._first is None:
            return "the resources have not been listed yet"
        return f"{len(self._first)} resources wait for their first pass" if self._first else None
