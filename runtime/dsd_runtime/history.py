"""The schedules that one engine core has used since it started, the latest ones, each with the time it came into use.

In memory only: a restart of the engine forgets them, and the answer says since when it knows. Kept apart from the
status, which is polled and is the answer to every PUT. `engine` records, the route /dsd/v1/history tells.
"""

import datetime as dt
import threading
import time
from collections import deque
from typing import Final

from dsd_runtime.protocol import EngineCoreHistory, PastSchedule, ScheduleState

MAX_KEPT: Final = 32
"""Changes kept: days of a table set by hand, and 100 KB in an answer at most."""


class History:
    """Written under the state's lock, read from another thread."""

    def __init__(self) -> None:
        self._started = time.time()
        self._count = 0
        self._kept: deque[tuple[float, ScheduleState]] = deque(maxlen=MAX_KEPT)
        self._lock = threading.Lock()

    def add(self, schedule: ScheduleState) -> None:
        """`schedule` came into use now."""
        with self._lock:
            self._count += 1
            self._kept.append((time.time(), schedule))

    def tell(self, engine: int) -> EngineCoreHistory:
        """What is known, the oldest first."""
        with self._lock:
            kept, count = tuple(self._kept), self._count
        changes = tuple(PastSchedule(time=_text(at), schedule=schedule) for at, schedule in kept)
        return EngineCoreHistory(
            engine=engine, started=_text(self._started), forgotten=count - len(kept), changes=changes
        )


def _text(at: float) -> str:
    """RFC 3339 in milliseconds: changes follow each other within a second."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
