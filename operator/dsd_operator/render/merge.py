"""Merges the user's podTemplate over ours, list items by their key. The user wins, except where `owned` refuses.

Both sides have passed `shapes` (ours by construction), so nothing here checks types; nulls went when the resource was
parsed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dsd_operator.render.shapes import merge_key

Item = Mapping[str, Any]

_HANDLERS: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
"""A probe or a hook has exactly one of these."""

_HOOKS: Final = frozenset({"preStop", "postStart"})

_LIST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "claims": ("name",),
}
"""Lists that merge by key; any other list of the user replaces ours."""

_WHOLE_ITEMS: Final = frozenset({"volumes", "env", "volumeMounts"})
"""Here the user's item replaces ours as a whole: two sources in one volume or variable would be invalid."""


def merge(ours: Item, users: Item) -> dict[str, Any]:
    """`users` over `ours`: objects field by field, the lists of the table above by key, everything else replaced."""
    merged = dict(ours)
    for name, value in users.items():
        merged[name] = _merge_field(name, merged.get(name), value)
    return merged


def _merge_field(name: str, ours: Any, users: Any) -> Any:
    if name == "tolerations" and isinstance(users, list):
        return append_tolerations(ours or [], users)
    if (name.endswith("Probe") or name in _HOOKS) and ours and _HANDLERS & users.keys():
        ours = {key: value for key, value in ours.items() if key not in _HANDLERS}
    if isinstance(ours, Mapping) and isinstance(users, Mapping):
        return merge(ours, users)
    if name in _LIST_KEYS and ours:
        return _merge_list(name, ours, users)
    return users


def _merge_list(name: str, ours: Sequence[Item], users: Sequence[Item]) -> list[Item]:
    key = _LIST_KEYS[name]
    if name == "env":
        return override_env(ours, users)
    changes = {merge_key(item, key): item for item in users}
    kept = [_merge_item(name, item, changes.pop(merge_key(item, key), None)) for item in ours]
    return [*kept, *(item for item in users if merge_key(item, key) in changes)]


def _merge_item(name: str, ours: Item, users: Item | None) -> Item:
    if users is None:
        return ours
    if name == "ports":
        # Probes, the Service and monitors refer to our port by its name.
        return merge(users, ours)
    return users if name in _WHOLE_ITEMS else merge(ours, users)


def override_env(lower: Sequence[Item], higher: Sequence[Item]) -> list[Item]:
    """Variables of `higher` after those of `lower` that it does not set.

    Each list keeps its order, because `$(NAME)` refers to what stands before it.
    """
    taken = {item["name"] for item in higher}
    return [*(item for item in lower if item["name"] not in taken), *higher]


def append_tolerations(ours: Sequence[Item], users: Sequence[Item]) -> list[Item]:
    """All of both, without exact duplicates: a toleration has no key of its own."""
    merged: list[Item] = []
    for toleration in (*ours, *users):
        if toleration not in merged:
            merged.append(toleration)
    return merged
