"""The history of a resource's pods: for each envelope, what was rendered for it, in a ControllerRevision. Pure.

As long as the envelope is the same, the pods' description that is stored for it is applied, whatever the operator's
version would render now: an upgrade of the operator restarts no pod. `reconcile.history` reads and writes it.

The workload says in a label which envelope it was made for. So where the history was lost, or the workload is
older than it, what runs is taken into the history rather than replaced.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.constants import GROUP
from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.render.managed_fields import applied_by
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import ENVELOPE, child_metadata, with_envelope
from dsd_operator.render.pod_template import ENGINE

API_VERSION: Final = "apps/v1"
KIND: Final = "ControllerRevision"
RENDERED_BY: Final = f"{GROUP}/rendered-by"
"""Annotation with the version of the operator that rendered the pods; empty where it is not known."""

LIMIT: Final = 10
"""Revisions that are kept, the one in use included."""

_REFUSED: Final = frozenset({"InvalidSpec", "ApplyFailed", "ForeignObject"})
"""Reasons of Progressing that say that the workload was not made from the spec."""

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Pods:
    """`described` is the part of the workload's spec that restarts pods, for the envelope of this hash."""

    envelope: str
    described: Object
    manifest: Object
    """The ControllerRevision that holds it."""
    stored: bool = False
    """Whether the API server has exactly this manifest."""


@dataclass(frozen=True)
class Running:
    """The workload that there is, of the kind that the resource asks for, and the field manager that applies it."""

    live: Object | None
    manager: str


def choose(
    resource: DSDDeployment, rendered: Object, revisions: Sequence[Object], running: Running, version: str
) -> Pods:
    """What is used for the resource's envelope: what is stored for it; else what runs, if that was made for it; else
    `rendered`, by this `version` of the operator. `revisions` are those of this resource that are stored.
    """
    asked = envelope(resource.spec)
    found = envelope_hash(asked)
    newest = max((int(r["revision"]) for r in revisions), default=0)
    known = next((r for r in revisions if r["metadata"]["name"] == name_of(resource, found)), None)
    if known is not None:
        return _again(resource, found, known, newest)
    adopted = _adopted(resource, found, rendered.keys(), running)
    data = {"envelope": asked, "pods": rendered if adopted is None else adopted}
    return Pods(found, data["pods"], _manifest(resource, found, data, newest + 1, version if adopted is None else ""))


def _again(resource: DSDDeployment, found: str, known: Object, newest: int) -> Pods:
    """The envelope has been there before, or still is: its revision becomes the newest."""
    number = int(known["revision"])
    manifest = _manifest(resource, found, known["data"], number if number == newest else newest + 1, rendered_by(known))
    ours = known["metadata"].get("ownerReferences") == manifest["metadata"]["ownerReferences"]
    return Pods(found, known["data"]["pods"], manifest, stored=ours and number == newest)


def expired(revisions: Sequence[Object], used: Pods) -> list[Object]:
    """The revisions beyond the newest ones, oldest first; never the one in use."""
    others = [r for r in revisions if r["metadata"]["name"] != used.manifest["metadata"]["name"]]
    ordered = sorted(others, key=lambda r: int(r["revision"]))
    return ordered[: max(0, len(ordered) - (LIMIT - 1))]


def name_of(resource: DSDDeployment, found: str) -> str:
    """The name of the revision for the envelope of this hash; at most 61 characters."""
    return f"{names_for(resource.metadata.name).base}-{found}"


def rendered_by(revision: Object) -> str:
    """The version of the operator that rendered a revision's pods; empty where it is not known."""
    return str((revision["metadata"].get("annotations") or {}).get(RENDERED_BY, ""))


def is_readable(revision: Object) -> bool:
    """Whether it holds what ours hold. Other controllers copy labels from pods to revisions of their own."""
    data = revision.get("data") or {}
    return isinstance(data.get("envelope"), Mapping) and isinstance(data.get("pods"), Mapping)


def _manifest(resource: DSDDeployment, found: str, data: Object, number: int, version: str) -> dict[str, Any]:
    named = {"name": name_of(resource, found), "annotations": {RENDERED_BY: version}}
    metadata = with_envelope(child_metadata(resource), resource) | named
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "data": data, "revision": number}


def _adopted(resource: DSDDeployment, wanted: str, parts: Collection[str], running: Running) -> Object | None:
    """These parts of the spec that runs, reduced to our own fields, if they are known to be made for the present
    envelope."""
    if running.live is None or not _made_for(resource, wanted, running.live):
        return None
    spec: Object = applied_by(running.manager, running.live).get("spec", {})
    found = {name: spec[name] for name in parts if name in spec}
    return found if found.keys() == set(parts) and _is_whole(found) else None


def _made_for(resource: DSDDeployment, wanted: str, live: Object) -> bool:
    told = (live["metadata"].get("labels") or {}).get(ENVELOPE)
    if told is not None:
        return bool(told == wanted)
    # Made before workloads said it: then by what the status said of the last pass.
    conditions = {c.get("type"): c.get("reason") for c in resource.status.get("conditions") or ()}
    current = resource.status.get("observedGeneration") == resource.metadata.generation
    return current and "Progressing" in conditions and conditions["Progressing"] not in _REFUSED


def _is_whole(part: Object) -> bool:
    """Whether nobody took away from us what makes an engine (by an edit while the operator was away)."""
    engines = list(_engines(part))
    return bool(engines) and all(engine.keys() >= {"image", "command", "args", "env"} for engine in engines)


def _engines(part: Object) -> Iterator[Object]:
    """The engine containers of every pod template in it."""
    for name, value in part.items():
        if name == "containers":
            yield from (container for container in value if container.get("name") == ENGINE)
        elif isinstance(value, Mapping):
            yield from _engines(value)
