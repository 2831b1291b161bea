"""Tokens for the engine pods: the operator's own identity, for one audience, which is one DSDDeployment.

Age is measured by a monotonic clock, so that a wall clock that is set back cannot keep a dead token alive; what that
misses (a suspended machine, a rotated key) comes back as a 401, and `drop` makes the next call mint anew.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dsd_operator.cluster.client import Client

LIFETIME_SECONDS: Final = 600
"""Asked for: the shortest life that the API server grants. A token that somebody steals is good for no longer."""

_RENEW_AT: Final = 0.5
"""Share of its life after which a token is replaced: early, so that a pod's clock that runs ahead still accepts it."""


@dataclass(frozen=True)
class _Minted:
    token: str
    renew_at: float


@dataclass
class Tokens:
    """Cached tokens by audience."""

    client: Client
    namespace: str
    service_account: str
    clock: Callable[[], float]
    """Monotonic seconds."""
    _cached: dict[str, _Minted] = field(default_factory=dict)
    _minting: dict[str, asyncio.Lock] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The `sub` claim of every token."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"

    async def get(self, audience: str) -> str:
        """A token that is good for a while yet; ApiError if a new one is needed and refused."""
        async with self._minting.setdefault(audience, asyncio.Lock()):  # pods ask at the same time; one token does
            cached = self._cached.get(audience)
            if cached is None or self.clock() >= cached.renew_at:
                cached = self._cached[audience] = await self._mint(audience)
            return cached.token

    async def _mint(self, audience: str) -> _Minted:
        asked_at = self.clock()
        answer = await self.client.request_token(self.namespace, self.service_account, audience, LIFETIME_SECONDS)
        lifetime = int(answer.get("spec", {}).get("expirationSeconds", LIFETIME_SECONDS))
        return _Minted(str(answer["status"]["token"]), asked_at + lifetime * _RENEW_AT)

    def drop(self, audience: str, refused: str) -> None:
        """Never use `refused` again. A newer one stays: several pods refuse the old one at the same time."""
        cached = self._cached.get(audience)
        if cached is not None and cached.token == refused:
            del self._cached[audience]

    def forget(self, audience: str) -> None:
        """The deployment is gone."""
        self._cached.pop(audience, None)
        self._minting.pop(audience, None)
