"""The keys that engine pods check tokens with: issuer and key set of the API server, followed through rotations.

A key that the API server no longer names stays in the set for as long as a token signed with it may be in use. Kept
in memory only: after a restart of the operator there are no old tokens.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.cluster.client import Client
from dsd_operator.cluster.tokens import LIFETIME_SECONDS

REFRESH_SECONDS: Final = 300.0
"""Age at which the key set is read anew."""

REFRESH_AFTER_REFUSAL_SECONDS: Final = 10.0
"""After a pod refused a token: soon, but not once for every pod."""

Key = Mapping[str, Any]


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
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self, max_age: float = REFRESH_SECONDS) -> KeySet:
        """The key set, at most `max_age` seconds old; ApiError if it must be read and cannot."""
        async with self._lock:
            if self.clock() - self._read_at >= max_age:
                await self._read()
        return self._key_set()

    def known(self) -> KeySet | None:
        """The key set as last read; None before the first time."""
        return self._key_set() if self._last_named else None

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
