"""Reads and writes the history of a resource's pods (`render.history` decides): which description of them is applied.

Read when the operator meets a resource and when its envelope changes; in between, memory knows. Written before the
workload, so that an operator that ends between any two writes finds its way. Where the history cannot be read, the
workload is left as it is, and everything else goes on.

No watch shows ControllerRevisions: there are ten for each resource, and only one of them matters. It is looked for with
the resync instead.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dsd_operator import __version__
from dsd_operator.api import DSDDeployment
from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.cluster import resources
from dsd_operator.cluster.client import FIELD_MANAGER, Client
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.ownership import Claim, claim, controller
from dsd_operator.reconcile.apply import Report, apply_one, failed
from dsd_operator.reconcile.memory import Kept, Memory
from dsd_operator.render.context import RenderContext
from dsd_operator.render.history import KIND, Running, choose, expired, is_readable
from dsd_operator.render.labels import joined, selector_string
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import owner_reference
from dsd_operator.render.plan import digest, plan
from dsd_operator.render.preflight import envelope_problems
from dsd_operator.render.workload import KINDS, kind_of, pods_of

Object = Mapping[str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planned:
    """The children to apply, and what went wrong on the way to them."""

    manifests: tuple[Object, ...]
    report: Report = field(default_factory=Report)


async def planned(
    client: Client, resource: DSDDeployment, live: Mapping[str, Object], context: RenderContext, memory: Memory
) -> Planned:
    """The plan, with the pods that belong to the envelope, and the revision that holds them if it has to be written."""
    try:
        await _read(client, resource, live, context, memory)
    except ApiError as error:
        return _without_workload(plan(resource, context), error)
    used = memory.used
    if used is None:
        return Planned(plan(resource, context))
    revision = used.manifest
    manifests = plan(resource, replace(context, pods=revision["data"]["pods"]))
    return Planned(manifests if used.stored else (revision, *manifests))


def _without_workload(manifests: Sequence[Object], error: ApiError) -> Planned:
    """The failure is the workload's: what runs may not be what the resource asks for, and no status may say it is."""
    message = f"is left as it is, because the history of the pods cannot be read: {error.message}"
    left = (failed(m, message, error=error) for m in manifests if m["kind"] in KINDS)
    return Planned(tuple(m for m in manifests if m["kind"] not in KINDS), sum(left, Report()))


async def _read(
    client: Client, resource: DSDDeployment, live: Mapping[str, Object], context: RenderContext, memory: Memory
) -> None:
    """Bring `memory.used` to the present envelope; None where no pods can be made from it."""
    wanted, used = envelope_hash(envelope(resource.spec)), memory.used
    if used is not None and used.envelope == wanted:
        written = memory.applied.get(KIND)
        if not used.stored and written is not None and written.digest == digest(used.manifest):
            memory.used = replace(used, stored=True)
        return
    memory.used, memory.expired = None, ()
    if envelope_problems(resource):
        return
    names = names_for(resource.metadata.name)
    found = await client.list(resources.CONTROLLER_REVISION, resource.metadata.namespace, selector_string(names))
    owner = owner_reference(resource)
    revisions = [r for r in found if claim(r, owner) in (Claim.OURS, Claim.ORPHAN) and is_readable(r)]
    running = Running(live.get(kind_of(resource)), FIELD_MANAGER)
    pods = choose(resource, pods_of(resource, context), revisions, running, __version__)
    memory.used, memory.expired = Kept.of(pods), tuple(expired(revisions, pods))


async def keep(client: Client, memory: Memory, now: float, interval: float) -> Report:
    """Write the revision in use again if it is gone or is another one; looked for once in `interval` seconds. Raises
    nothing: what cannot be read is as it was, for all that is known.

    Only in this one is what the pods are made from. Of older ones somebody may have had enough.
    """
    used = memory.used
    if memory.looked_at is None:
        memory.looked_at = now
    if used is None or not used.stored or now - memory.looked_at < interval:
        return Report()
    memory.looked_at = now
    wanted = used.manifest
    try:
        found = await client.list(
            resources.CONTROLLER_REVISION, wanted["metadata"]["namespace"], joined(wanted["metadata"]["labels"])
        )
    except ApiError as error:
        _log.debug("Cannot look for the ControllerRevision in use: %s", error.message)
        return Report()
    if any(_is_same(revision, wanted) for revision in found):
        return Report()
    memory.used = replace(used, stored=False)  # until it is written: where that fails, the next pass tries again
    memory.applied.pop(KIND, None)
    return await apply_one(client, wanted, None, memory)


def _is_same(revision: Object, wanted: Object) -> bool:
    """Its data needs no look: the API server lets nobody change them."""
    owner = controller(wanted)
    known = [(r["metadata"]["name"], r["revision"]) for r in (revision, wanted)]
    return owner is not None and known[0] == known[1] and claim(revision, owner) is Claim.OURS


async def prune(client: Client, memory: Memory) -> Report:
    """Delete the revisions that are too many, once the one in use is written. What fails is tried again the next time
    that the history is read."""
    if memory.used is None or not memory.used.stored:
        return Report()
    old: Sequence[Object]
    old, memory.expired = memory.expired, ()
    for revision in old:
        name = revision["metadata"]["name"]
        try:
            await client.delete(_with_kind(revision))
        except ApiError as error:
            _log.warning("Cannot delete the old ControllerRevision %s: %s", name, error.message)
        else:
            _log.info("Deleted ControllerRevision %s: it is older than the last ones that are kept", name)
    return Report()


def _with_kind(revision: Object) -> Object:
    """The items of a list do not say what they are."""
    return {"apiVersion": resources.CONTROLLER_REVISION.api_version, "kind": KIND, **revision}
