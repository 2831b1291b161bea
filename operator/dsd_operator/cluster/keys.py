"""The keys that engine pods check tokens with: issuer and key set of the API server, followed through rotations.

A key that the API server no longer names stays in the set for as long as a token signed with it may be in use. Kept
in memory only: after a restart of the operator there are no old tokens.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.tokens import LIFETIME_SECONDS

REFRESH_SECONDS: Final = 300.0
"""Age at which the key set is read anew."""

REFRESH_AFTER_REFUSAL_SECONDS: Final = 2.0
"""After a pod refused a token: soon, but not once for every pod."""

RETRY_SECONDS: Final = 10.0
"""After a failed read, while keys are known: a slow answer must not hold up each schedule."""

Key = Mapping[str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeySet:
    """What goes into the config file; equal while nothing rotates, in whatever order the API server answers."""

    issuer: str
    keys: tuple[Key, ...]

    @property
    def jwks(self) -> dict[str, Any]:
        """As a JSON Web Key Set."""
        return {"keys": [dict(key) for key in self.keys]}


@dataclass
class Keys:
    """The current key set, refreshed when it is asked for."""

    client: Client
    clock: Callable[[], float]
    """Monotonic seconds."""
    _issuer: str = ""
    _last_named: dict[str, tuple[Key, float]] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _failed_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self, max_age: float = REFRESH_SECONDS) -> KeySet:
        """The key set, at most `max_age` seconds old; the last known one if it cannot be read, ApiError if none is."""
        async with self._lock:
            if self._due(max_age):
                await self._try()
        return self._key_set()

    def known(self) -> KeySet | None:
        """The key set as it was last read, without a request; None before the first time."""
        return self._key_set() if self._last_named else None

    def _due(self, max_age: float) -> bool:
        now = self.clock()
        return now - self._read_at >= max_age and now - self._failed_at >= RETRY_SECONDS

    async def _try(self) -> None:
        try:
            await self._read()
        except ApiError as error:
            if not self._last_named:
                raise
            self._failed_at = self.clock()
            _log.warning("Cannot read the API server's signing keys, keeping those known: %s", error.message)

    async def _read(self) -> None:
        self._issuer, named = await asyncio.gather(self.client.issuer(), self.client.signing_keys())
        now = self._read_at = self.clock()
        self._last_named |= {_text(key): (key, now) for key in named.get("keys") or ()}
        oldest = now - LIFETIME_SECONDS
        self._last_named = {text: seen for text, seen in self._last_named.items() if seen[1] >= oldest}

    def _key_set(self) -> KeySet:
        ordered: Sequence[str] = sorted(self._last_named)
        return KeySet(self._issuer, tuple(self._last_named[text][0] for text in ordered))


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)
