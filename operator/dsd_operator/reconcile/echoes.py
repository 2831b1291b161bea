"""What a pass wrote comes back as an event of the watches, and tells nothing that the pass did not know.

Such an event is recognised by the object's version, which the API server named in its answer to the write. Without that
each change of a schedule would be followed by a pass for each object that it wrote, all of which read everything anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dsd_operator.cluster.resources import DSD_DEPLOYMENT, WATCHED

_KINDS: Final = frozenset(resource.kind for resource in (DSD_DEPLOYMENT, *WATCHED))
"""Those that a watch shows. Of no other is an echo to come, and nothing would ever take its note away."""


class Sight(NamedTuple):
    """An object as a watch shows it, or as a write left it."""

    kind: str
    namespace: str
    name: str
    version: str
    leaving: bool


def sight(thing: Mapping[str, Any]) -> Sight:
    """What matters of an object here."""
    meta = thing["metadata"]
    leaving = bool(meta.get("deletionTimestamp"))
    return Sight(thing["kind"], meta["namespace"], meta["name"], str(meta.get("resourceVersion", "")), leaving)


@dataclass
class Echoes:
    """The latest version that passes left of each object."""

    _written: dict[tuple[str, str, str], Sight] = field(default_factory=dict)

    def wrote(self, thing: Mapping[str, Any]) -> None:
        """A pass wrote this object, got it back as it is here, and has taken that into account."""
        if thing["kind"] in _KINDS:
            seen = sight(thing)
            self._written[seen[:3]] = seen

    def know(self, seen: Sight) -> bool:
        """Whether the object is as a pass left it. One that is being deleted never is."""
        return not seen.leaving and self._written.get(seen[:3]) == seen

    def forget(self, namespace: str, *names: str) -> None:
        """The objects of these names are gone."""
        for reference in [r for r in self._written if r[1] == namespace and r[2] in names]:
            del self._written[reference]
