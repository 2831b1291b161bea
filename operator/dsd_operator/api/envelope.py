"""The envelope: what of the spec restarts pods when it changes. The one definition; the rest is hot or beside the pods.

Its hash says whether pods must be made anew, and outlives the operator's version. So it is made of what the user asked
for alone: what equals its default is left out (a newer operator has more fields, and they change no hash), quantities
count by value, and all ways to say nothing are one. Pure.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api.quantity import by_value
from dsd_operator.api.spec import Spec

ENVELOPE_FIELDS: Final[Mapping[str, frozenset[str] | None]] = {
    "model": None,
    "drafter": None,
    "engine": None,
    "resources": None,
    "sharedMemory": None,
    "startup": None,
    "cache": None,
    "podTemplate": None,
    "rollout": frozenset({"drainTimeoutSeconds", "restartedAt"}),
}
"""Fields of the spec, and those inside them that count (None: all)."""

_KNOWN_TO_PODS: Final = frozenset({"existingClaim", "offline", "fsGroup"})

HASH_LENGTH: Final = 10
"""Hex digits of the hash: enough for the few envelopes of one resource, short enough for the end of a name."""


def envelope(spec: Spec) -> dict[str, Any]:
    """What the user asked for of the envelope, in the user's spelling: put into a spec, it is the same again."""
    stated = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    parts = {name: _part(stated[name], inner) for name, inner in ENVELOPE_FIELDS.items() if name in stated}
    return _without_emptied(parts)


def envelope_hash(asked: Mapping[str, Any]) -> str:
    """A short hash of what `envelope` returns, the same for all spellings of it."""
    text = json.dumps(_canonical(asked), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def _part(value: Mapping[str, Any], inner: frozenset[str] | None) -> dict[str, Any]:
    return {name: item for name, item in value.items() if inner is None or name in inner}


def _without_emptied(parts: dict[str, Any]) -> dict[str, Any]:
    """Without what was emptied. Further inside a podTemplate an empty object may say something: `emptyDir: {}`."""
    template = parts.get("podTemplate", {})
    for place in (template.get("metadata", {}), template, parts.get("resources", {}), parts):
        for name in [name for name, value in place.items() if value in ({}, [])]:
            del place[name]
    return parts


def _canonical(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Amounts by value, sets in order, and nothing of what pods do not know."""
    made: dict[str, Any] = by_value(asked)
    prepared, cache = made.get("drafter", {}).get("preparedTokens"), made.get("cache", {})
    if prepared is not None:
        made["drafter"]["preparedTokens"] = sorted(prepared)
    if "size" in cache:
        # Pods mount the claim, and do not know how large it is or of which class: it can grow under them.
        made["cache"] = {name: item for name, item in cache.items() if name in _KNOWN_TO_PODS} | {"size": True}
    return made
