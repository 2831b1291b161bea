"""Does the last of many calls that come close together, as `engine` shows the schedule. Pure but for a clock.

One change is shown at once. A hundred in a second need not be shown each, and must not cost the engine core, which
takes them between two steps, a file each.
"""

import threading
import time
from collections.abc import Callable


class Throttle:
    """Calls at once what comes first; of what follows within `seconds`, the last, when they are over, in a thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free_at = 0.0
        self._waiting: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def call(self, action: Callable[[], None]) -> None:
        """Do `action`, now or soon, unless another comes before that; it must not raise, for it may be in a thread."""
        with self._lock:
            left = self._free_at - time.monotonic()
            if left <= 0 and self._waiting is None:
                self._do(action)
                return
            if self._waiting is None:
                timer = threading.Timer(max(left, 0.0), self._late)
                timer.daemon = True  # must not keep a process that ends
                timer.start()
            self._waiting = action

    def _late(self) -> None:
        with self._lock:
            action, self._waiting = self._waiting, None
            if action is not None:
                self._do(action)

    def _do(self, action: Callable[[], None]) -> None:
        self._free_at = time.monotonic() + self._seconds
        action()
