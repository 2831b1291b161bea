"""The resync: lists every resource at the start and at intervals, so that no missed event stays missed."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.places import Places
from dsd_operator.reconcile.queue import Backoff, Key, WorkQueue
from dsd_operator.reconcile.wakeups import Wakeups

_SPREAD: Final = 0.5
"""Share of the interval over which the passes of one resync are spread."""

_log = logging.getLogger(__name__)


@dataclass
class Resync:
    """Lists the resources of the places that are served."""

    client: Client
    queue: WorkQueue
    wakeups: Wakeups
    places: Places
    seconds: float
    spread: Callable[[], float] = random.random
    _known: set[Key] = field(default_factory=set)

    async def first(self) -> frozenset[Key]:
        """Put all resources into the queue at once; tries until the API server answers. Returns their keys."""
        backoff, failures = Backoff(), 0
        while True:
            try:
                keys = await self._list()
            except ApiError as error:
                failures += 1
                _log.warning("Cannot list the resources, trying again: %s", error.message)
                await asyncio.sleep(backoff.delay(failures, self.spread()))
                continue
            for key in keys:
                self.wakeups.resource(key)
            return keys

    async def run(self) -> None:
        """Resync at intervals, until cancelled."""
        while True:
            await asyncio.sleep(self.seconds * (0.9 + 0.2 * self.spread()))
            try:
                await self._again()
            except ApiError as error:
                _log.warning("Resync skipped: %s", error.message)

    async def _again(self) -> None:
        before = self._known
        for key in before | await self._list():  # a pass also clears up after a resource whose end was missed
            self.wakeups.learn(key)
            self.queue.add_after(key, self.spread() * _SPREAD * self.seconds)

    async def _list(self) -> frozenset[Key]:
        places: Sequence[str | None] = self.places.served or (None,)
        lists = await asyncio.gather(*(self.client.names(resources.DSD_DEPLOYMENT, place) for place in places))
        found = frozenset(Key(namespace, name) for names in lists for namespace, name in names)
        self._known = set(found)
        return found
