"""Whose is the object that stands where a child belongs? Apply with force only what is absent or ours.

Pure. `reconcile.apply` acts on the answer.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from dsd_operator.api.constants import GROUP, KIND
from dsd_operator.render.labels import MANAGED_BY_LABEL, MANAGER

Object = Mapping[str, Any]


class Claim(StrEnum):
    """How an object, or its absence, stands to a resource."""

    ABSENT = "Absent"
    OURS = "Ours"
    ORPHAN = "Orphan"
    """Ours before: our label, and no controller, or an earlier resource of the same name. May be taken over."""
    LEAVING = "Leaving"
    """Being deleted: applying now would be in vain, its end brings an event."""
    FOREIGN = "Foreign"


def claim(live: Object | None, wanted: Object) -> Claim:
    """How `live` stands to the resource that the owner reference `wanted` names."""
    if live is None:
        return Claim.ABSENT
    meta = live["metadata"]
    owner = controller(live)
    ours = owner is not None and owner["uid"] == wanted["uid"]
    if not ours and not (_carries_our_label(meta) and _replaceable(owner, wanted)):
        return Claim.FOREIGN
    if meta.get("deletionTimestamp"):
        return Claim.LEAVING
    return Claim.OURS if ours else Claim.ORPHAN


def controller(thing: Object) -> Object | None:
    """The owner reference that controls an object, if there is one."""
    references: Sequence[Object] = thing["metadata"].get("ownerReferences") or ()
    return next((r for r in references if r.get("controller")), None)


def _carries_our_label(meta: Object) -> bool:
    return bool((meta.get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGER)


def _replaceable(owner: Object | None, wanted: Object) -> bool:
    """No controller, or one that is gone: two resources of one name cannot exist, so the other uid's is no more.

    The old reference is a field of our own manager, so the apply that brings the new one removes it.
    """
    if owner is None:
        return True
    same_group = str(owner.get("apiVersion", "")).partition("/")[0] == GROUP
    return same_group and owner.get("kind") == KIND and owner.get("name") == wanted["name"]
