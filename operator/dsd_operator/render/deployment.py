"""The Deployment: replicas, roll-out and the pod template."""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.context import RenderContext
from dsd_operator.render.deadline import progress_deadline
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata, with_envelope

_REVISION_HISTORY: Final = 3


def deployment(resource: DSDDeployment, context: RenderContext, pods: Mapping[str, Any]) -> dict[str, Any]:
    """The resource has passed `preflight`; `pods` is the part of the spec that restarts pods (`workload.pods_of`)."""
    spec = resource.spec
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": with_envelope(child_metadata(resource), resource),
        "spec": {
            **context.scale(resource),
            "selector": {"matchLabels": selector(names_for(resource.metadata.name))},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": spec.rollout.max_surge, "maxUnavailable": spec.rollout.max_unavailable},
            },
            "minReadySeconds": spec.rollout.min_ready_seconds,
            "progressDeadlineSeconds": progress_deadline(spec, pods["template"]["spec"]),
            "revisionHistoryLimit": _REVISION_HISTORY,
            **pods,
        },
    }
