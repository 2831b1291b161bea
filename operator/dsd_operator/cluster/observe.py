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


async def observe(client: Client, resource: DSDDeployment) -> Snapshot:
    """Read all children and pods; ApiError if one of the reads fails."""
    namespace = resource.metadata.namespace
    names = names_for(resource.metadata.name)
    selector = selector_string(names)
    *children, replica_sets, pods = await asyncio.gather(
        *(client.get(kind, namespace, names.base) for kind in resources.APPLIED),
        client.list(resources.REPLICA_SET, namespace, selector),
        client.list(resources.POD, namespace, selector),
    )
    live = {r.kind: child for r, child in zip(resources.APPLIED, children, strict=True) if isinstance(child, dict)}
    owner = owner_reference(resource)
    ours = {kind: child for kind, child in live.items() if claim(child, owner) is not Claim.FOREIGN}
    own_sets, own_pods = _descendants(ours.get("Deployment"), _objects(replica_sets), _objects(pods))
    return Snapshot(live, Observed(ours.get("Deployment"), own_sets, own_pods, ours.get("ConfigMap")))


def _objects(listed: Any) -> Sequence[Object]:
    return listed or ()


def _descendants(
    deployment: Object | None, replica_sets: Sequence[Object], pods: Sequence[Object]
) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """Our ReplicaSets, and the pods that they made: a stranger's pod with our labels gets no token and no count."""
    own_sets = _controlled_by({deployment["metadata"]["uid"]} if deployment else set(), replica_sets)
    return own_sets, _controlled_by({r["metadata"]["uid"] for r in own_sets}, pods)


def _controlled_by(uids: set[str], objects: Sequence[Object]) -> tuple[Object, ...]:
    return tuple(o for o in objects if (owner := controller(o)) is not None and owner["uid"] in uids)
