"""One look at everything that belongs to a DSDDeployment, read at the same time from the API server itself.

From the server and not from the watches: a pass that was woken by one event must not decide on old copies of the rest.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.ownership import Claim, claim, controller
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.labels import all_pods, is_worker, joined, selector_string
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import owner_reference
from dsd_operator.status.cache import ExistingClaim
from dsd_operator.status.observed import Observed
from dsd_operator.status.workload import of_deployment, of_groups

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """What stands under the names of one resource's children, and what carries its labels, whoever made it."""

    children: Mapping[str, Object]
    """By kind; only kinds that exist."""
    replica_sets: Sequence[Object]
    pods: Sequence[Object]
    stateful_sets: Sequence[Object] = ()

    def of(self, resource: DSDDeployment) -> "Snapshot":
        """What of it belongs to `resource`."""
        return Snapshot(self, owner_reference(resource))


@dataclass(frozen=True)
class Snapshot:
    """What is there: the objects under our children's names, whoever made them, and our pods."""

    found: Found
    owner: Object
    scaled_by: str = ""
    """The autoscaler that scales the workload itself (`cluster.scaling`); empty if none does."""

    @property
    def live(self) -> Mapping[str, Object]:
        """The objects under our children's names, by kind."""
        return self.found.children

    @cached_property
    def observed(self) -> Observed:
        """What is ours of it."""
        found, live = self.found, self.found.children
        ours = {kind: child for kind, child in live.items() if claim(child, self.owner) is not Claim.FOREIGN}
        # A stranger's pod with our labels gets no token and no count, so each must descend from our workload.
        engines = [pod for pod in found.pods if not is_worker(pod)]
        replica_sets = _controlled_by(_uids([ours.get("Deployment")]), found.replica_sets)
        single = _controlled_by(_uids(replica_sets), engines)
        leader_sets = _controlled_by(_uids([ours.get(groups.KIND)]), found.stateful_sets)
        leaders = _controlled_by(_uids(leader_sets), engines)
        worker_sets = _controlled_by(_uids(leaders), found.stateful_sets)
        workers = _controlled_by(_uids(worker_sets), found.pods)
        workloads = []
        if "Deployment" in ours:
            workloads.append(of_deployment(ours["Deployment"], replica_sets, single))
        if groups.KIND in ours:
            first = next(iter(leader_sets), None)
            workloads.append(of_groups(ours[groups.KIND], first, leaders, workers, worker_sets))
        return Observed(tuple(workloads), (*single, *leaders), ours.get("ConfigMap"), workers, scaled_by=self.scaled_by)

    def with_applied(self, applied: Iterable[Object]) -> "Snapshot":
        """The same look with what the API server answered to our applies, so that the status is not a pass behind."""
        new = {str(o["kind"]): o for o in applied}
        return replace(self, found=replace(self.found, children={**self.found.children, **new}))


async def look(client: Client, namespace: str, name: str, groups_too: bool) -> Found:
    """Read all children and pods of a resource by its name; ApiError if one of the reads fails.

    The resource itself is read after them: when its children are being orphaned, it shows that it is being deleted.
    The other way round a pass could take them for damaged, and tie them to a resource that is about to go.
    """
    names = names_for(name)
    children, replica_sets, pods, group = await asyncio.gather(
        asyncio.gather(*(client.get(kind, namespace, names.base) for kind in resources.APPLIED)),
        client.list(resources.REPLICA_SET, namespace, selector_string(names)),
        client.list(resources.POD, namespace, joined(all_pods(names))),
        client.get(resources.LEADER_WORKER_SET, namespace, names.group) if groups_too else _nothing(),
    )
    live = {r.kind: child for r, child in zip(resources.APPLIED, children, strict=True) if child is not None}
    stateful_sets: Sequence[Object] = ()
    if group is not None:
        # After the pods: each group that is made anew gets a StatefulSet of its own, and a pod whose owner was not
        # read would be a stranger's.
        stateful_sets = await client.list(resources.STATEFUL_SET, namespace, groups.members(names))
        live[groups.KIND] = group
    return Found(live, replica_sets, pods, stateful_sets)


async def existing_claim(client: Client, resource: DSDDeployment) -> ExistingClaim | None:
    """The claim that the resource names; None where it names none, or where rights to read it are missing."""
    name = resource.spec.cache.existing_claim
    if name is None:
        return None
    try:
        return ExistingClaim(name, await client.get(resources.CLAIM, resource.metadata.namespace, name))
    except ApiError:
        return None


async def _nothing() -> None:
    return None


def _uids(objects: Iterable[Object | None]) -> set[str]:
    return {thing["metadata"]["uid"] for thing in objects if thing is not None}


def _controlled_by(uids: set[str], objects: Sequence[Object]) -> tuple[Object, ...]:
    return tuple(o for o in objects if (owner := controller(o)) is not None and owner["uid"] in uids)
