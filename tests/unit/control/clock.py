"""Time that passes only when a test says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeTimer:
    """A call that was asked for."""

    at: float
    callback: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        """Never call back."""
        self.cancelled = True

    def when(self) -> float:
        """The time of the call."""
        return self.at


@dataclass
class FakeClock:
    """Stands for an event loop's clock; calling it gives the time."""

    now: float = 1000.0
    timers: list[FakeTimer] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def time(self) -> float:
        """The time."""
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> FakeTimer:
        """Call back when the time has come."""
        timer = FakeTimer(self.now + delay, lambda: callback(*args))
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass and make the calls that are due, in order."""
        self.now += seconds
        due = sorted((t for t in self.timers if t.at <= self.now), key=lambda t: t.at)
        self.timers = [t for t in self.timers if t.at > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.callback()
