"""What two envelopes differ in, for people, and the change of a spec that makes one of the other. Pure.

What people are told holds no secret: variables are named without their values, and the redactor of `convert` goes over
the rest. A token that was moved to a Secret still stands in the revision from before.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from dsd_operator.api.envelope import ENVELOPE_FIELDS
from kubectl_dsd.convert.redactor import Redactor

Object = Mapping[str, Any]

_CLAIM: Final = ("size", "storageClass", "accessMode")
"""Fields of a cache that cannot go back: a claim does not shrink."""

_VARIABLES: Final = "env"
"""The field with variables, of the engine and of every container."""


def changes(before: Object, after: Object) -> Iterator[str]:
    """One text for each field that differs: `engine.maxNumSeqs: 8 -> 16`, `engine.env[A]: changed`."""
    redactor = Redactor()
    for part in (before, after):
        redactor.data(part, _nothing)  # all are known before the first is told
    yield from _changes(before, after, "", redactor)


def _changes(before: Object, after: Object, path: str, redactor: Redactor) -> Iterator[str]:
    for name in sorted({*before, *after}):
        old, new, here = before.get(name), after.get(name), f"{path}{name}"
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changes(old, new, f"{here}.", redactor)
        elif name == _VARIABLES and (_named(old) or _named(new)):
            yield from list(_variables(_named(old), _named(new), here)) or [f"{here}: in another order"]
        elif _unique(old) and _unique(new):
            yield from list(_items(name, _unique(old), _unique(new), path, redactor)) or [f"{here}: in another order"]
        else:
            yield f"{here}: {_shown(name, old, redactor)} -> {_shown(name, new, redactor)}"


def _items(field: str, before: Object, after: Object, path: str, redactor: Redactor) -> Iterator[str]:
    """The same for a list of things with names: containers, volumes, mounts."""
    for name in sorted({*before, *after}):
        old, new, here = before.get(name), after.get(name), f"{path}{field}[{name}]"
        if old is not None and new is not None:
            yield from _changes(old, new, f"{here}.", redactor)
        else:
            yield f"{here}: {_shown(field, old, redactor)} -> {_shown(field, new, redactor)}"


def _variables(before: Object, after: Object, path: str) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            what = "added" if name not in before else "removed" if name not in after else "changed"
            yield f"{path}[{name}]: {what}"


def _named(items: Any) -> dict[str, Object]:
    """The items of a list by their names, empty where it is something else."""
    if not isinstance(items, list) or not all(isinstance(item, Mapping) and "name" in item for item in items):
        return {}
    return {str(item["name"]): item for item in items}


def _unique(items: Any) -> dict[str, Object]:
    """The same, empty also where a name is there twice: mounts of one volume."""
    named = _named(items)
    return named if named and len(named) == len(items) else {}


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


def _shown(name: str, value: Any, redactor: Redactor) -> str:
    return "unset" if value is None else str(redactor.data(_without_values({name: value}), _nothing)[name])


def _without_values(data: Any) -> Any:
    """Variables as the list of their names."""
    if isinstance(data, list):
        return [_without_values(item) for item in data]
    if not isinstance(data, Mapping):
        return data
    found = {name: list(_named(value)) if name == _VARIABLES else [] for name, value in data.items()}
    return {name: found[name] or _without_values(value) for name, value in data.items()}


def _nothing(_: str) -> None:
    """Nobody asks where a secret was."""
