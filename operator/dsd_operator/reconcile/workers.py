"""The workers: take a key, run a pass, decide when it comes again. Errors end here, in the log and the backoff."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from dsd_operator.cluster.errors import ApiError, Gone, Retry
from dsd_operator.logs import about
from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.queue import Key, WorkQueue
from dsd_operator.reconcile.reconciler import Done, Reconciler
from dsd_operator.reconcile.wakeups import Wakeups

_log = logging.getLogger(__name__)


@dataclass
class Workers:
    """A fixed number of concurrent passes; never two for one key."""

    queue: WorkQueue
    wakeups: Wakeups
    reconciler: Reconciler
    metrics: Metrics
    clock: Callable[[], float]
    """Monotonic seconds."""
    finished: Callable[[Key], None] = lambda _: None
    """Told of every pass that ended, whatever came of it."""
    _started: dict[Key, float] = field(default_factory=dict)

    async def run(self, count: int) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._work(), name=f"worker {number}")

    def longest_pass(self) -> float:
        """Seconds since the start of the oldest pass that still runs; 0 if none does."""
        return self.clock() - min(self._started.values(), default=self.clock())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            self._started[key] = started = self.clock()
            try:
                with about(*key):
                    end = await self._pass(key)
                    self.wakeups.passed(key)
                    self._settle(key, end)
            finally:
                del self._started[key]
                self.queue.done(key)
                self.metrics.reconcile_duration_seconds.observe(self.clock() - started)
                self.finished(key)

    async def _pass(self, key: Key) -> Done | Exception:
        try:
            return await self.reconciler.reconcile(key)
        except Gone as error:
            _log.debug("Gone in the middle of a pass: %s", error.message)
            return error
        except ApiError as error:
            _log.warning("The pass failed: %s", error.message)
            return error
        except Exception as error:
            _log.exception("The pass failed in a way that nobody foresaw; this is a fault of the operator")
            return error

    def _settle(self, key: Key, end: Done | Exception) -> None:
        if isinstance(end, Exception):
            self._again(key, end.delay if isinstance(end, Retry) else 0.0, "error")
        elif end.retry:
            self._again(key, end.delay, "retry")
            self._look_again(key, end)
        else:
            self.queue.succeeded(key)
            self._look_again(key, end)
            self._count("gone" if end.gone else "success")
            if end.gone:
                self.wakeups.forget(key)

    def _look_again(self, key: Key, end: Done) -> None:
        """Also while something fails: its backoff grows long, and what is looked for is none of it (a workload that is
        taken over step by step, a kind that may come). Yet never sooner than the API server asked for."""
        if end.again:
            self.queue.add_after(key, max(end.again, end.delay))

    def _again(self, key: Key, at_least: float, result: str) -> None:
        delay = self.queue.retry(key, at_least)
        self._count(result)
        _log.debug("Next pass in %.1f s at the latest", delay)

    def _count(self, result: str) -> None:
        self.metrics.reconcile_total.labels(result).inc()
