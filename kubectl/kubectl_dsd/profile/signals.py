"""Ctrl-C, SIGTERM and a closed terminal while a schedule of ours is in force: the first ends the measurement, further
ones do not end what puts the old schedule back.
"""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

EXIT: Final = 128
"""A process that a signal ends exits with this and the signal's number."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Signal `number` came; no Exception, so that nobody takes it for a failure of a request."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """While the block runs, the first signal raises Interrupted in the main thread; after `shield`, none does.

    `number` is the first signal that came, None if none did. `busy` tells people why a further one has no effect.
    """

    def __init__(self, busy: Callable[[], None]) -> None:
        self.number: int | None = None
        self._busy, self._shielded = busy, False
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = [signal.signal(number, self._handle) for number in SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def shield(self) -> None:
        """From now on signals are only remembered."""
        self._shielded = True

    def _handle(self, number: int, _: FrameType | None) -> None:
        first, self.number = self.number is None, self.number or number
        if first and not self._shielded:
            raise Interrupted(number)
        self._busy()
