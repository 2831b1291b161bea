"""From a watched object to the key of its resource. Children are found by their label, which outlives their owner
reference; the label of a resource follows from its name, so those of all known resources make the index."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsd_operator.reconcile.queue import Key, WorkQueue
from dsd_operator.reconcile.watches import Watches
from dsd_operator.render.labels import DEPLOYMENT_LABEL
from dsd_operator.render.names import names_for


@dataclass
class Wakeups:
    """Puts keys into the queue. Nothing here can fail: kopf drops what a handler raises."""

    queue: WorkQueue
    watches: Watches
    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def resource(self, key: Key) -> None:
        """A DSDDeployment was created, changed or deleted, or is due."""
        self.learn(key)
        self.queue.add(key)

    def child(self, namespace: str, thing: Mapping[str, Any]) -> None:
        """An object that carries our labels was created, changed or deleted."""
        label = (thing["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL, "")
        name = self._names.get((namespace, label))
        if name is not None:  # else the resource is gone, or its own event is still to come
            self.queue.add(Key(namespace, name))

    def learn(self, key: Key) -> None:
        """Know the resource, so that its children are recognised."""
        self._names[key.namespace, names_for(key.name).label] = key.name

    def forget(self, key: Key) -> None:
        """The resource is gone, unless it waits again: then it has come back meanwhile."""
        if key not in self.queue:
            self._names.pop((key.namespace, names_for(key.name).label), None)
            self.queue.forget(key)
