"""The watches: one on DSDDeployments, one on each kind of labelled child. Each event becomes one key in the queue.

`kopf.on.event` and nothing else: kopf then writes nothing to any object, neither a finalizer nor an annotation. It
drops what these handlers raise, so they do nothing that can fail. Every selector names its API group, or one broken
aggregated API would stop the start.
"""

from typing import Any, Final

import kopf

from dsd_operator.api.constants import GROUP, PLURAL, VERSION
from dsd_operator.cluster.resources import WATCHED
from dsd_operator.reconcile.queue import Key
from dsd_operator.reconcile.wakeups import Wakeups


def _group_and_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


CHILDREN: Final = tuple((*_group_and_version(kind.api_version), kind.plural) for kind in WATCHED)
"""Group, version, plural."""

_DELETED: Final = "DELETED"


def register(registry: kopf.OperatorRegistry, wakeups: Wakeups) -> None:
    """Register all handlers."""

    async def on_resource(event: Any, body: Any, namespace: str | None, name: str, **_: Any) -> None:
        deleted = _note(wakeups, event, body)
        wakeups.own(Key(namespace or "", name), body, deleted)

    async def on_child(event: Any, body: Any, namespace: str | None, **_: Any) -> None:
        deleted = _note(wakeups, event, body)
        wakeups.child(namespace or "", body, deleted)

    kopf.on.event(GROUP, VERSION, PLURAL, id=PLURAL, registry=registry)(on_resource)
    for group, version, plural in CHILDREN:
        kopf.on.event(group, version, plural, id=plural, registry=registry)(on_child)


def _note(wakeups: Wakeups, event: Any, body: Any) -> bool:
    """Tell what the watch showed; whether it was the object's end."""
    deleted: bool = event["type"] == _DELETED
    note = wakeups.watches.gone if deleted else wakeups.watches.shown
    note(body)
    return deleted
