"""Which children are brought together, and in what order: what pods need, the workload last; and what stands beside.

Each child is on its own: one that is refused holds up no other. `applier` runs the two groups apart, so that a slow
answer about one of the second holds up nothing that serves.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dsd_operator.cluster.client import Client
from dsd_operator.cluster.resources import CONFIG_MAP, SERVICE_ACCOUNT
from dsd_operator.reconcile import history, optional
from dsd_operator.reconcile.apply import Report, apply_one
from dsd_operator.reconcile.memory import Memory
from dsd_operator.render.extras import BY_KIND, EXTRAS
from dsd_operator.render.workload import KINDS, accounts
from dsd_operator.status.observed import ApplyFailure

_MOUNTED: Final = frozenset({CONFIG_MAP.kind, *(extra.kind for extra in EXTRAS if extra.needed_by_pods)})
"""What pods find by a name alone, whoever made what has it."""

Object = Mapping[str, Any]


def is_beside(manifest: Object) -> bool:
    """Whether pods do without it."""
    extra = BY_KIND.get(manifest["kind"])
    return extra is not None and not extra.needed_by_pods


async def bring_needed(
    client: Client, manifests: Sequence[Object], live: Mapping[str, Object], memory: Memory, held: bool = False
) -> Report:
    """Apply what pods need, and then the workload; raises nothing for a child that fails: the report says so.

    While a stranger's object has the name of one that they would mount, or run as, the workload is left as it is (so
    too where `held`): its pods would read what is not ours, write to it, or have rights that nobody gave them. One that
    is merely refused holds up nothing, since a pod waits for what is not there.
    """
    last = [m for m in manifests if m["kind"] in KINDS]
    report = await _all(
        optional.bring(client, m, memory) if m["kind"] in BY_KIND else apply_one(client, m, live.get(m["kind"]), memory)
        for m in manifests
        if m["kind"] not in KINDS
    )
    strange = any(failure.foreign and _is_used(failure, last) for failure in report.failures)
    report = replace(report, holds=report.holds or strange)
    if report.holds or held:
        return report
    return report + await _all(apply_one(client, m, live.get(m["kind"]), memory) for m in last)


def _is_used(failure: ApplyFailure, workloads: Sequence[Object]) -> bool:
    """Whether pods would use the object of this name. The account is theirs unless the podTemplate names another."""
    if failure.kind == SERVICE_ACCOUNT.kind:
        return any(failure.name in accounts(workload) for workload in workloads)
    return failure.kind in _MOUNTED


async def bring_beside(
    client: Client, manifests: Sequence[Object], memory: Memory, unwanted: Sequence[Object]
) -> Report:
    """Apply what is wanted beside the pods, and delete what is not, old revisions among it; raises nothing either.

    What leads to another comes after it, and is left as it is while that is not there, or is not ours; and nothing is
    deleted that it may lead to still. `manifests` may lack some that failed before.
    """
    gone = {identity["kind"] for identity in unwanted}
    led = [m for m in manifests if _leads_to(m) and _leads_to(m) not in gone]
    first = [m for m in manifests if m not in led]
    report = await _all([*(optional.bring(client, m, memory) for m in first), history.prune(client, memory)])
    there = _settled(first, report)
    report += await _all(
        optional.bring(client, m, memory) if _leads_to(m) in there else optional.wait(client, m, _leads_to(m))
        for m in led
    )
    moved = _settled(manifests, report) | gone
    held = {extra.leads_to for extra in EXTRAS if extra.kind not in moved}
    return report + await _all(optional.drop(client, each, memory) for each in unwanted if each["kind"] not in held)


def _leads_to(manifest: Object) -> str:
    """The kind of the child that it leads to, unless the resource asks for none; empty where it leads to none."""
    return BY_KIND[manifest["kind"]].leads_to


def _settled(manifests: Sequence[Object], report: Report) -> set[str]:
    return {m["kind"] for m in manifests} - {failure.kind for failure in report.failures}


async def _all(work: Iterable[Coroutine[Any, Any, Report]]) -> Report:
    return sum(await asyncio.gather(*work), Report())
