"""What of an object one field manager set by server-side apply: the object reduced to the fields of its entry.

The form of `fieldsV1` (sigs.k8s.io/structured-merge-diff, `fieldpath/serialize.go`): `f:NAME` is a field, `k:{…}` the
item of a list with these keys, `v:…` the item of a set with this value, `.` the thing itself. What has nothing below it
is owned as a whole. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]


def applied_by(manager: str, thing: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `thing` that `manager` applied and that nobody else has changed since; {} where there are none."""
    for entry in thing["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == (manager, "Apply", None):
            found: dict[str, Any] = _owned(thing, entry.get("fieldsV1") or {})
            return found
    return {}


def _owned(value: Any, fields: Fields) -> Any:
    inner = {key: below for key, below in fields.items() if key != "."}
    if not inner:
        return value
    if isinstance(value, Mapping):
        names = ((key.removeprefix("f:"), below) for key, below in inner.items() if key.startswith("f:"))
        return {name: _owned(value[name], below) for name, below in names if name in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_owned(item, below) for item in value if (below := _entry_of(item, inner)) is not None]
    return value


def _entry_of(item: Any, fields: Fields) -> Fields | None:
    """The entry that is about this item of a list."""
    for key, below in fields.items():
        kind, _, text = key.partition(":")
        if (kind == "v" and item == json.loads(text)) or (kind == "k" and _matches(item, json.loads(text))):
            return dict(below)
    return None


def _matches(item: Any, keys: Mapping[str, Any]) -> bool:
    return isinstance(item, Mapping) and all(item.get(name) == value for name, value in keys.items())
