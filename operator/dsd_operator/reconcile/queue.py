"""The work queue: which resources wait for a reconcile pass. Filled by `handlers`, emptied by `workers`.

A key waits at most once, and is never handed out twice at the same time: added while its pass runs, it comes again
afterwards. Time comes from outside (`Clock`), so that tests need none.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Key(NamedTuple):
    """One DSDDeployment."""

    namespace: str
    name: str


class Timer(Protocol):
    """What `Clock.call_later` returns."""

    def cancel(self) -> None:
        """Never call back."""

    def when(self) -> float:
        """The time of the call, in the clock's seconds."""


class Clock(Protocol):
    """The part of an asyncio event loop that the queue uses."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call `callback` in `delay` seconds."""


@dataclass(frozen=True)
class Backoff:
    """Delays for a key that fails again and again: doubling from `first` to `limit` seconds, spread by ±`jitter`."""

    first: float = 0.5
    limit: float = 60.0
    jitter: float = 0.2

    def delay(self, failures: int, spread: float) -> float:
        """Seconds before the next try after `failures` (1 or more) in a row; `spread` is random in 0..1."""
        plain = min(self.limit, self.first * 2.0 ** min(failures - 1, 32))
        return plain * (1 + self.jitter * (2 * spread - 1))


@dataclass
class WorkQueue:
    """A de-duplicating queue of keys with delayed adds and a backoff for each key."""

    clock: Clock
    backoff: Backoff = field(default_factory=Backoff)
    spread: Callable[[], float] = random.random
    _waiting: dict[Key, None] = field(default_factory=dict)
    """In the order in which they came."""
    _running: set[Key] = field(default_factory=set)
    _timers: dict[Key, Timer] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, key: Key) -> None:
        """Ask for a pass now, whatever backoff the key is in. Cannot fail."""
        self._cancel(key)
        self._waiting[key] = None
        self._wake.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Ask for a pass in `delay` seconds; the earliest of several such wishes counts."""
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= self.clock.time() + delay:
            return
        self._cancel(key)
        self._timers[key] = self.clock.call_later(delay, self.add, key)

    def retry(self, key: Key, at_least: float = 0.0) -> float:
        """Ask for a pass after the key's backoff and no sooner than `at_least` seconds; returns the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self.backoff.delay(self._failures[key], self.spread()))
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: Key) -> None:
        """The key's next failure counts as its first."""
        self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """Drop all that is known of a key that is gone. A wish made meanwhile stays: it may have come back."""
        self._cancel(key)
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """The key that waits longest, for this caller alone until `done`."""
        while True:
            for key in self._waiting:
                if key not in self._running:
                    del self._waiting[key]
                    self._running.add(key)
                    return key
            self._wake.clear()
            await self._wake.wait()

    def done(self, key: Key) -> None:
        """The pass is over; the key may be handed out again."""
        self._running.discard(key)
        if key in self._waiting:
            self._wake.set()

    def __contains__(self, key: Key) -> bool:
        """Whether the key waits for a pass."""
        return key in self._waiting

    def runs(self, key: Key) -> bool:
        """Whether the key's pass runs now."""
        return key in self._running

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return len(self._waiting)

    def _cancel(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
