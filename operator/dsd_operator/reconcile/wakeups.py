"""From a watched object to the key of its resource. Children are found by their label, which outlives their owner
reference; the label of a resource follows from its name, so those of all known resources make the index.

An event that only shows what a pass itself wrote wakes nobody (`echoes`). It may come before the pass has its answer,
so what comes during a pass is judged when the pass is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.api.constants import KIND
from dsd_operator.reconcile.echoes import Sight, sight
from dsd_operator.reconcile.queue import Key, WorkQueue
from dsd_operator.reconcile.watches import Watches
from dsd_operator.render.labels import DEPLOYMENT_LABEL
from dsd_operator.render.names import names_for

SETTLE_SECONDS: Final = 0.1
"""Children change in bursts (a pod is made, scheduled, started): one pass after a burst, not one for each event."""


@dataclass
class Wakeups:
    """Puts keys into the queue. Nothing here can fail: kopf drops what a handler raises."""

    queue: WorkQueue
    watches: Watches
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _held: dict[Key, set[Sight]] = field(default_factory=dict)
    """What was seen of each resource while its pass runs."""

    def resource(self, key: Key) -> None:
        """A DSDDeployment is due."""
        self.learn(key)
        self.queue.add(key)

    def own(self, key: Key, thing: Mapping[str, Any], deleted: bool) -> None:
        """A DSDDeployment was created, changed or deleted."""
        self.learn(key)
        if self._tells_something(key, thing, deleted):
            self.queue.add(key)

    def child(self, namespace: str, thing: Mapping[str, Any], deleted: bool = False) -> None:
        """An object that carries our labels was created, changed or deleted."""
        label = (thing["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL, "")
        name = self._names.get((namespace, label))
        if name is None:  # the resource is gone, or its own event is still to come
            return
        key = Key(namespace, name)
        if self._tells_something(key, thing, deleted) and key not in self.queue:
            self.queue.add_after(key, SETTLE_SECONDS)

    def passed(self, key: Key) -> None:
        """The key's pass is over: what was seen meanwhile, and is not its own work, wakes it again."""
        news = [seen for seen in self._held.pop(key, ()) if not self.watches.echoes.know(seen)]
        if any(seen.kind == KIND for seen in news):
            self.queue.add(key)
        elif news:
            self.queue.add_after(key, SETTLE_SECONDS)

    def _tells_something(self, key: Key, thing: Mapping[str, Any], deleted: bool) -> bool:
        seen = sight(thing)
        if deleted:
            seen = seen._replace(leaving=True)
        if self.queue.runs(key):
            self._held.setdefault(key, set()).add(seen)
            return False
        return not self.watches.echoes.know(seen)

    def learn(self, key: Key) -> None:
        """Know the resource, so that its children are recognised."""
        self._names[key.namespace, names_for(key.name).label] = key.name

    def forget(self, key: Key) -> None:
        """The resource is gone, unless it waits again: then it has come back meanwhile."""
        if key not in self.queue:
            self._names.pop((key.namespace, names_for(key.name).label), None)
            self.queue.forget(key)
