"""The stored revisions of a deployment's pods, read from the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsd_operator.api import InvalidResource, parse
from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.render.history import KIND, is_readable, rendered_by
from dsd_operator.render.labels import selector_string
from dsd_operator.render.names import names_for
from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import Failure


@dataclass(frozen=True)
class Revision:
    """`envelope` is what the user asked for, `version` that of the operator that rendered the pods (empty: unknown)."""

    number: int
    hash: str
    envelope: Mapping[str, Any]
    version: str
    created: str


def revisions_of(cluster: Cluster, deployment: Mapping[str, Any]) -> list[Revision]:
    """All that are stored, the oldest first; raises ApiFailure."""
    meta = deployment["metadata"]
    found = cluster.list(KIND, meta["namespace"], selector_string(names_for(meta["name"])))
    ours = [thing for thing in found if _belongs(thing, meta["uid"]) and is_readable(thing)]
    return sorted((_revision(thing) for thing in ours), key=lambda revision: revision.number)


def present(deployment: Mapping[str, Any]) -> str:
    """The hash of the envelope that the resource asks for; empty where this command does not understand it."""
    try:
        return envelope_hash(envelope(parse(deployment).spec))
    except InvalidResource:
        return ""


def pick(revisions: Sequence[Revision], current: str, number: int | None) -> Revision:
    """The revision of this number; without one the newest that the resource does not ask for. Raises Failure."""
    numbers = ", ".join(str(revision.number) for revision in revisions)
    if number is None:
        others = [revision for revision in revisions if revision.hash != current]
        if not others:
            raise Failure("there is no other revision to go back to", "`kubectl dsd rollout history` shows them.")
        return others[-1]
    found = next((revision for revision in revisions if revision.number == number), None)
    if found is None:
        raise Failure(f"there is no revision {number}", f"There are: {numbers}." if numbers else "There are none.")
    return found


def _belongs(thing: Mapping[str, Any], uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in thing["metadata"].get("ownerReferences") or ())


def _revision(thing: Mapping[str, Any]) -> Revision:
    asked = thing["data"]["envelope"]
    created = str(thing["metadata"].get("creationTimestamp") or "")
    return Revision(int(thing["revision"]), envelope_hash(asked), asked, rendered_by(thing), created)
