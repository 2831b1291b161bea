"""What rendering needs besides the resource: the operator's settings and the schedule's revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.render.neighbours import Neighbours
from dsd_runtime.protocol import Revision, TokenReviewAuth


@dataclass(frozen=True)
class RenderContext:
    """`runtime_image` is used where the resource names none; without `auth` the pods refuse schedules over HTTP."""

    runtime_image: str
    revision: Revision
    auth: TokenReviewAuth | None = None
    neighbours: Neighbours = field(default_factory=Neighbours, kw_only=True)
    fs_group: int | None = field(default=None, kw_only=True)
    """Group of the files of a cache's claim, where the resource names none."""
    held: int = 0
    """Replicas that the other kind of workload still has, while engines move from one node to several, or back."""

    grouped: bool = field(default=False, kw_only=True)
    """Whether pods of engines over several nodes are there still, also ones that end: they serve to their end."""

    pods: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """The part of the workload's spec that restarts pods, where it is known from before; None: it is rendered anew."""

    scaled_by: str = field(default="", kw_only=True)
    """The autoscaler that scales the workload itself: then the workload says nothing of replicas."""

    def replicas(self, resource: DSDDeployment) -> int:
        """How many the workload may have now: the other one's count as pods of an older template do."""
        spec = resource.spec
        return max(0, min(spec.replicas, spec.replicas + spec.rollout.max_surge - self.held))

    def scale(self, resource: DSDDeployment) -> dict[str, int]:
        """The part of the workload's spec that says how many."""
        return {} if self.scaled_by else {"replicas": self.replicas(resource)}
