"""The chosen namespaces, and which of them can be served: those where the operator may list resources.

A namespace that is deleted takes its Role along. A watch there would end the process, and with it the service of all
the others; so such a namespace is left aside until its resources can be listed again.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError, Forbidden

WAIT_SECONDS: Final = 2.0
"""Between two looks while there is no namespace to serve."""

LOOK_SECONDS: Final = 30.0
"""Between two looks at what was left aside."""

_log = logging.getLogger(__name__)


@dataclass
class Places:
    """`chosen` are the namespaces of the settings; empty: all of the cluster, about which nothing is asked."""

    client: Client
    chosen: tuple[str, ...]
    served: tuple[str, ...] = ()

    async def find(self) -> None:
        """Set `served`; waits until there is a namespace that can be."""
        told: set[str] = set()
        while self.chosen:
            refused = await self._answers(self.chosen)
            for place, reason in (refused or {}).items():
                if place not in told:
                    _log.warning("Namespace %s is not served: %s", place, reason)
                    told.add(place)
            if refused is not None:
                self.served = tuple(place for place in self.chosen if place not in refused)
            if self.served:
                return
            await asyncio.sleep(WAIT_SECONDS)

    async def until_more(self) -> None:
        """Ends when a namespace that was left aside can be served; never, if none was."""
        aside = [place for place in self.chosen if place not in self.served]
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            refused = await self._answers(aside)
            back = [place for place in aside if refused is not None and place not in refused]
            if back:
                _log.info("Can be served again: %s. Starting anew", ", ".join(back))
                return

    async def _answers(self, places: Sequence[str]) -> dict[str, str] | None:
        """The places that the API server refuses, each with its reason; None where it does not answer for all."""
        try:
            reasons = await asyncio.gather(*(self._refusal(place) for place in places))
        except ApiError as error:
            _log.debug("Cannot ask for the namespaces: %s", error.message)
            return None
        return {place: reason for place, reason in zip(places, reasons, strict=True) if reason is not None}

    async def _refusal(self, place: str) -> str | None:
        try:
            await self.client.first(resources.DSD_DEPLOYMENT, place)
        except Forbidden as error:
            return f"{error.message}. Does the namespace exist, with the chart's Role in it?"
        return None
