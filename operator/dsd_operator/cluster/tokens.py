"""Tokens for the engine pods: the operator's own identity, for one audience, which is one DSDDeployment.

Age is measured by a monotonic clock, so that a wall clock that is set back cannot keep a dead token alive; what that
misses (a suspended machine, a rotated key) comes back as a 401, and `drop` makes the next call mint anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dsd_operator.cluster.client import Client

LIFETIME_SECONDS: Final = 3600
"""Asked for; the API server grants 600 or more."""

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

    @property
    def subject(self) -> str:
        """The `sub` claim of every token."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"

    async def get(self, audience: str) -> str:
        """A token that is good for a while yet; ApiError if a new one is needed and refused."""
        cached = self._cached.get(audience)
        if cached is not None and self.clock() < cached.renew_at:
            return cached.token
        asked_at = self.clock()
        answer = await self.client.request_token(self.namespace, self.service_account, audience, LIFETIME_SECONDS)
        lifetime = int(answer.get("spec", {}).get("expirationSeconds", LIFETIME_SECONDS))
        minted = _Minted(str(answer["status"]["token"]), asked_at + lifetime * _RENEW_AT)
        self._cached[audience] = minted
        return minted.token

    def drop(self, audience: str, refused: str | None = None) -> None:
        """Forget the token, or only `refused`: a newer one stays when several pods refuse the old one at once."""
        cached = self._cached.get(audience)
        if cached is not None and refused in (None, cached.token):
            del self._cached[audience]
