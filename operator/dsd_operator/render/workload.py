"""The workload: what makes and keeps the pods of a resource. A Deployment, or a LeaderWorkerSet for several nodes."""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.context import RenderContext
from dsd_operator.render.deployment import deployment

KINDS: Final = ("Deployment", groups.KIND)

ADVICE: Final = {groups.KIND: groups.ADVICE}
"""What to do where the cluster does not know the kind."""


def kind_of(resource: DSDDeployment) -> str:
    """The kind that the resource asks for."""
    return groups.KIND if groups.is_wanted(resource) else "Deployment"


def workload(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """The manifest; the resource has passed `preflight`."""
    made = groups.leader_worker_set if groups.is_wanted(resource) else deployment
    return made(resource, context)
