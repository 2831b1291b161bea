"""Bringing one child to the API server. `children` says which go together, and in what order.

A child is applied when the plan changed since our last apply, when it is another object than then, or when somebody
took a field of ours: then our entry in its managedFields is not the one that we left. Its fields are never compared
with the plan, because clusters change them on the way in (webhooks, defaults), and we would never agree.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.cluster.client import FIELD_MANAGER, Client
from dsd_operator.cluster.errors import ApiError, Forbidden, Gone, Invalid, Retry
from dsd_operator.cluster.ownership import Claim, claim, controller
from dsd_operator.cluster.resources import resource_of
from dsd_operator.reconcile.memory import Applied, Memory
from dsd_operator.render.plan import digest
from dsd_operator.render.workload import ADVICE
from dsd_operator.status.observed import ApplyFailure

LOOK_AGAIN_SECONDS: Final = 15.0
"""How soon a kind that the cluster does not have is looked for again: nothing tells when it comes."""

_LEFT_OVER: Final = "; it is left over from an earlier resource of this name: delete it, and it is made anew"
"""Some clusters (OpenShift) let only those change an owner who may delete the object, which we may not."""

Object = Mapping[str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What came of the children: the objects that were applied, and those that could not be."""

    applied: tuple[Object, ...] = ()
    failures: tuple[ApplyFailure, ...] = ()
    retry: bool = False
    """Whether a failure may heal without an event that would wake us."""
    delay: float = 0.0
    """Seconds that the API server asked to wait before that."""
    again: float = 0.0
    """Seconds after which another look is worth it though nothing failed; 0: no need."""
    holds: bool = False
    """Whether the workload is left as it is: what its pods would mount is not known to be ours."""

    def __add__(self, other: "Report") -> "Report":
        return Report(
            (*self.applied, *other.applied),
            (*self.failures, *other.failures),
            self.retry or other.retry,
            max(self.delay, other.delay),
            soonest(self.again, other.again),
            self.holds or other.holds,
        )


def soonest(*seconds: float) -> float:
    """The first of several times to look again; 0, which stands for no need, only if all are."""
    return min((each for each in seconds if each > 0), default=0.0)


async def apply_one(client: Client, manifest: Object, live: Object | None, memory: Memory) -> Report:
    """Apply one child if it needs it; `live` is the object under its name. Raises nothing for one that fails: the
    report says so."""
    owner = controller(manifest)
    if owner is None:
        raise ValueError(f"the plan names no controller for its {manifest['kind']}")
    standing = claim(live, owner)
    if standing is Claim.FOREIGN:
        return failed(manifest, _foreign_message(manifest, live), foreign=True)
    if standing is Claim.LEAVING:
        return failed(manifest, "is being deleted; it is made anew when it is gone")
    wanted = digest(manifest)
    if live is not None and memory.applied.get(manifest["kind"]) == _record(wanted, live):
        return Report()
    return await _send(client, manifest, wanted, standing, memory)


async def _send(client: Client, manifest: Object, wanted: str, standing: Claim, memory: Memory) -> Report:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    memory.sending.add((kind, name))
    try:
        stored = await client.apply(manifest)
    except ApiError as error:
        if isinstance(error, Gone) and await _is_unknown(client, manifest):
            return without_kind(manifest, ADVICE[kind])
        level = logging.DEBUG if isinstance(error, Gone) else logging.WARNING  # the namespace is on its way out
        _log.log(level, "The API server refuses %s %s: %s", kind, name, error.message)
        left_over = standing is Claim.ORPHAN and isinstance(error, Forbidden)
        return failed(manifest, error.message + (_LEFT_OVER if left_over else ""), error=error)
    finally:
        memory.sending.discard((kind, name))
    memory.applied[kind] = _record(wanted, stored)
    memory.stored[kind] = stored
    _log.info("Applied %s %s", kind, name)
    return Report(applied=(stored,))


async def _is_unknown(client: Client, manifest: Object) -> bool:
    """Whether it is for its kind that the API server finds nothing."""
    if manifest["kind"] not in ADVICE:
        return False
    try:
        return not await client.serves(resource_of(manifest))
    except ApiError:
        return False


def failed(manifest: Object, message: str, foreign: bool = False, error: ApiError | None = None) -> Report:
    """The report of a child that could not be brought; `error` decides whether another try is worth it."""
    failure = ApplyFailure(manifest["kind"], manifest["metadata"]["name"], message, foreign)
    # What is invalid stays so until the resource changes, and that is an event.
    retry = not isinstance(error, Invalid)
    return Report(failures=(failure,), retry=retry, delay=error.delay if isinstance(error, Retry) else 0.0)


def without_kind(manifest: Object, advice: str) -> Report:
    """The report of a child whose kind the cluster does not have: looked for again, outside the backoff."""
    kind, group = manifest["kind"], manifest["apiVersion"].partition("/")[0]
    message = f"this cluster has no {kind} ({group}): {advice}"
    failure = ApplyFailure(kind, manifest["metadata"]["name"], message, missing_kind=True)
    return Report(failures=(failure,), again=LOOK_AGAIN_SECONDS)


def _record(wanted: str, live: Object) -> Applied:
    return Applied(wanted, live["metadata"]["uid"], _our_entry(live))


def _our_entry(live: Object) -> str:
    """A hash of the fields that the API server holds for ours, and of when we last changed one of them.

    Values are not in it: whoever changes one takes the field. The time tells our own change that we do not know of: an
    earlier request of ours that had been given up and was carried out last, or a restored backup.
    """
    for entry in live["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == (FIELD_MANAGER, "Apply", None):
            text = json.dumps([entry.get("time"), entry.get("fieldsV1")], sort_keys=True)
            return hashlib.sha256(text.encode()).hexdigest()
    return ""


def _foreign_message(manifest: Object, live: Object | None) -> str:
    owner = controller(live) if live is not None else None
    belongs = f"; it belongs to {owner['kind']} {owner['name']}" if owner else ""
    return (
        f"a {manifest['kind']} of this name exists and is not ours{belongs}. It is left alone: delete or rename it, or "
        "give this resource another name"
    )
