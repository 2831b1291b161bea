"""Are the watches alive? Compares what passes read from the API server with what the watches brought.

A watch can go silent without ending. Whoever reads an object in a version that its watch has not shown yet expects an
event for it; one that stays away for minutes makes the operator unhealthy, and the kubelet restarts it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.api.constants import KIND
from dsd_operator.reconcile.echoes import Echoes
from dsd_operator.render.labels import MANAGED_BY_LABEL, MANAGER

GRACE_SECONDS: Final = 180.0
"""More than kopf takes to give up a silent stream (70 s) and to list anew."""

Reference = tuple[str, str, str]
"""Kind, namespace, name."""


@dataclass(frozen=True)
class _Shown:
    """The latest version that a watch brought, and since when its generation is the same."""

    version: str
    generation: int
    since: float


@dataclass
class Watches:
    """Expectations of events. Cheap enough for every event and every pass."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    echoes: Echoes = field(default_factory=Echoes)
    _shown: dict[Reference, _Shown] = field(default_factory=dict)
    _expected: dict[Reference, float] = field(default_factory=dict)

    def shown(self, thing: Mapping[str, Any]) -> None:
        """A watch brought this object: whatever was expected of it has come, or is about to."""
        reference, meta = _reference(thing), thing["metadata"]
        last, generation = self._shown.get(reference), int(meta.get("generation", 0))
        since = last.since if last is not None and last.generation == generation else self.clock()
        self._shown[reference] = _Shown(meta.get("resourceVersion", ""), generation, since)
        self._expected.pop(reference, None)

    def gone(self, thing: Mapping[str, Any]) -> None:
        """A watch brought the object's end."""
        self._shown.pop(_reference(thing), None)
        self._expected.pop(_reference(thing), None)

    def read(self, thing: Mapping[str, Any] | None) -> None:
        """A pass read this object."""
        if thing is None or not _is_watched(thing):
            return
        reference = _reference(thing)
        shown = self._shown.get(reference)
        if shown is None or _newer(thing["metadata"]["resourceVersion"], shown.version):
            self._expected.setdefault(reference, self.clock() + GRACE_SECONDS)

    def since(self, namespace: str, name: str, generation: int) -> float:
        """When the watch first showed this generation of a resource; now, if a pass was faster than the watch."""
        shown = self._shown.get((KIND, namespace, name))
        return shown.since if shown is not None and shown.generation == generation else self.clock()

    def forget(self, namespace: str, *names: str) -> None:
        """The objects of these names are gone, and a pass saw that."""
        self.echoes.forget(namespace, *names)
        for reference in [r for r in self._expected if r[1] == namespace and r[2] in names]:
            del self._expected[reference]

    def silent(self) -> list[str]:
        """What has been waited for too long: `Kind namespace/name`."""
        now = self.clock()
        return [f"{kind} {space}/{name}" for (kind, space, name), due in self._expected.items() if due < now]


def _newer(version: str, shown: str) -> bool:
    """Whether the watch has yet to show `version`. A pass takes a while, and the watch may be ahead of what it read.

    Versions of one kind compare as integers (KEP-5504); one that is no integer says nothing.
    """
    return version.isdecimal() and shown.isdecimal() and int(version) > int(shown)


def _is_watched(thing: Mapping[str, Any]) -> bool:
    """Children are watched by their label, which somebody may have taken off."""
    labels = thing["metadata"].get("labels") or {}
    return bool(thing["kind"] == KIND or labels.get(MANAGED_BY_LABEL) == MANAGER)


def _reference(thing: Mapping[str, Any]) -> Reference:
    meta = thing["metadata"]
    return str(thing["kind"]), str(meta["namespace"]), str(meta["name"])
