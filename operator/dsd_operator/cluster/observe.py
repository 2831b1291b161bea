"""One look at everything that belongs to a DSDDeployment, read at the same time from the API server itself.

From the server and not from the watches: a pass that was woken by one event must not decide on old copies of the rest.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.ownership import Claim, claim, controller
from dsd_operator.render.labels import selector_string
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import owner_reference
from dsd_operator.status.observed import Observed

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """What is there: the objects under our children's names, whoever made them, and our pods."""

    live: Mapping[str, Object]
    """By kind; only kinds that exist."""
    observed: Observed

    def with_applied(self, applied: Iterable[Object]) -> "Snapshot":
        """The same look with what the API server answered to our applies, so that the status is not a pass behind."""
        new = {str(o["kind"]): o for o in applied}
        deployment = new.get("Deployment", self.observed.deployment)
        config_map = new.get("ConfigMap", self.observed.config_map)
        observed = replace(self.observed, deployment=deployment, config_map=config_map)
        return Snapshot({**self.live, **new}, observed)


@dataclass(frozen=True)
class Found:
    """What stands under the names of one resource's children, and what carries its labels, whoever made it."""

    children: Mapping[str, Object]
    replica_sets: Sequence[Object]
    pods: Sequence[Object]

    def of(self, resource: DSDDeployment) -> Snapshot:
        """What of it belongs to `resource`."""
        owner = owner_reference(resource)
        ours = {kind: child for kind, child in self.children.items() if claim(child, owner) is not Claim.FOREIGN}
        deployment = ours.get("Deployment")
        own_sets = _controlled_by({deployment["metadata"]["uid"]} if deployment else set(), self.replica_sets)
        # Made by one of our ReplicaSets: a stranger's pod with our labels gets no token and no count.
        own_pods = _controlled_by({r["metadata"]["uid"] for r in own_sets}, self.pods)
        return Snapshot(self.children, Observed(deployment, own_sets, own_pods, ours.get("ConfigMap")))


async def look(client: Client, namespace: str, name: str) -> Found:
    """Read all children and pods of a resource by its name; ApiError if one of the reads fails.

    The resource itself is read after them: when its children are being orphaned, it shows that it is being deleted.
    The other way round a pass could take them for damaged, and tie them to a resource that is about to go.
    """
    names = names_for(name)
    selector = selector_string(names)
    children, replica_sets, pods = await asyncio.gather(
        asyncio.gather(*(client.get(kind, namespace, names.base) for kind in resources.APPLIED)),
        client.list(resources.REPLICA_SET, namespace, selector),
        client.list(resources.POD, namespace, selector),
    )
    live = {r.kind: child for r, child in zip(resources.APPLIED, children, strict=True) if child is not None}
    return Found(live, replica_sets, pods)


def _controlled_by(uids: set[str], objects: Sequence[Object]) -> tuple[Object, ...]:
    return tuple(o for o in objects if (owner := controller(o)) is not None and owner["uid"] in uids)
