"""Children that a resource may do without (`render.extras`): made where they are wanted, deleted where they are not.

Apart from the others, which wait for none of them. Each pass looks itself, in one request, and in none at all while
nothing is wanted and nothing was found: no watch shows the kinds that a cluster may not have.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError, Forbidden
from dsd_operator.cluster.ownership import Claim, claim, controller
from dsd_operator.cluster.resources import resource_of
from dsd_operator.reconcile.apply import LOOK_AGAIN_SECONDS, Report, apply_one, failed, without_kind
from dsd_operator.reconcile.memory import Memory
from dsd_operator.render.extras import BY_KIND, Extra
from dsd_operator.render.fit import Fit
from dsd_operator.status.observed import ApplyFailure

Object = Mapping[str, Any]

_log = logging.getLogger(__name__)


async def bring(client: Client, manifest: Object, memory: Memory) -> Report:
    """Apply a child; one whose kind the cluster does not have is a failure until it has it."""
    asked = manifest["kind"], manifest["metadata"]["name"]
    memory.absent.discard(manifest["kind"])
    memory.sending.add(asked)
    try:
        return await _bring(client, manifest, memory)
    finally:
        memory.sending.discard(asked)


async def _bring(client: Client, manifest: Object, memory: Memory) -> Report:
    try:
        live = await _look(client, manifest)
        extra = BY_KIND[manifest["kind"]]
        if live is None and extra.advice and not await client.serves(resource_of(manifest)):
            beside = "" if extra.needed_by_pods else ". Pods and schedule are not affected"
            return without_kind(manifest, extra.advice + beside)
    except ApiError as error:
        report = failed(manifest, error.message, error=error)
        # Whose it is nobody knows now, and pods would write to it: soon again.
        return replace(report, holds=True) if BY_KIND[manifest["kind"]].needed_by_pods else _apart(report)
    if live is None:
        return _apart(await apply_one(client, manifest, live, memory))
    fit = extra.fit(manifest, live)
    return _apart(_over(live, await apply_one(client, fit.manifest, live, memory), extra, fit))


def _over(live: Object, report: Report, extra: Extra, fit: Fit) -> Report:
    """The report of a child that is there already: what it holds stays in use, whatever became of the change."""
    if extra.keeps:
        report = replace(report, failures=tuple(_kept(failure, fit) for failure in report.failures))
    if not fit.left_out or report.failures:
        return report
    name = live["metadata"]["name"]
    failure = ApplyFailure(extra.kind, name, fit.left_out, unchangeable=True, in_use=extra.keeps)
    return replace(report, failures=(failure,))


def _kept(failure: ApplyFailure, fit: Fit) -> ApplyFailure:
    if failure.foreign:
        return failure
    return replace(failure, in_use=True, message="; ".join(filter(None, (failure.message, fit.change))))


async def wait(client: Client, manifest: Object, kind: str) -> Report:
    """Leave a child as it is, for the one of this kind that it is to lead to could not be made. That failure is told;
    of this child only that the cluster does not have its kind either."""
    _log.debug("%s %s waits for its %s", manifest["kind"], manifest["metadata"]["name"], kind)
    extra = BY_KIND[manifest["kind"]]
    try:
        known = await client.serves(resource_of(manifest))
    except ApiError:
        return Report(again=LOOK_AGAIN_SECONDS)
    return Report(again=LOOK_AGAIN_SECONDS) if known else without_kind(manifest, extra.advice)


async def drop(client: Client, identity: Object, memory: Memory) -> Report:
    """Delete a child that is not wanted, if there is one and it is this resource's."""
    kind, owner = identity["kind"], controller(identity)
    if kind in memory.absent or owner is None:
        return Report()
    try:
        live = await _look(client, identity)
        if claim(live, owner) is Claim.OURS and live is not None:
            await client.delete(live)
            _log.info("Deleted %s %s: it is no longer wanted", kind, live["metadata"]["name"])
    except Forbidden as error:
        if kind in memory.applied:
            message = f"is no longer wanted and cannot be deleted: {error.message}"
            return _apart(failed(identity, message, error=error))
    except ApiError as error:
        _log.warning("Cannot look for a %s that is not wanted: %s", kind, error.message)
        return Report(again=LOOK_AGAIN_SECONDS)
    memory.applied.pop(kind, None)
    memory.absent.add(kind)
    return Report()


async def _look(client: Client, manifest: Object) -> Object | None:
    meta = manifest["metadata"]
    return await client.get(resource_of(manifest), meta["namespace"], meta["name"])


def _apart(report: Report) -> Report:
    """The same report, tried again outside the resource's own backoff: a monitor that can never be made would leave
    that long, and what serves would wait for it when it fails."""
    if not report.retry:
        return report
    return replace(report, retry=False, delay=0.0, again=max(LOOK_AGAIN_SECONDS, report.delay))
