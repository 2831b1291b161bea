"""What two envelopes differ in, for people, and the change of a spec that makes one of the other. Pure."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from dsd_operator.api.envelope import ENVELOPE_FIELDS

Object = Mapping[str, Any]

_CLAIM: Final = ("size", "storageClass", "accessMode")
"""Fields of a cache that cannot go back: a claim does not shrink."""


def changes(before: Object, after: Object, path: str = "") -> Iterator[str]:
    """One text for each field that differs: `engine.maxNumSeqs: 8 -> 16`."""
    for name in sorted({*before, *after}):
        old, new, here = before.get(name), after.get(name), f"{path}{name}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from changes(old, new, f"{here}.")
        elif old != new:
            yield f"{here}: {_shown(old)} -> {_shown(new)}"


def patch(spec: Object, asked: Object) -> dict[str, Any]:
    """The JSON merge patch of `spec` after which its envelope is `asked`. A claim keeps its size, and what
    was not asked for gets its default.
    """
    found: dict[str, Any] = {}
    for name, inner in ENVELOPE_FIELDS.items():
        now, then = spec.get(name) or {}, deepcopy(dict(asked.get(name) or {}))
        if name == "cache" and "size" in now and "size" in then:
            then |= {field: now[field] for field in _CLAIM if field in now}
        wanted = {key: value for key, value in now.items() if inner is None or key in inner}
        if change := _merge_patch(wanted, then):
            found[name] = change
    return found


def _merge_patch(before: Object, after: Object) -> dict[str, Any]:
    found: dict[str, Any] = {name: None for name in before if name not in after}
    for name, new in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            if change := _merge_patch(old, new):
                found[name] = change
        elif old != new:
            found[name] = new
    return found


def _shown(value: Any) -> str:
    return "unset" if value is None else str(value)
