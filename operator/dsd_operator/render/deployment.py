"""The Deployment: replicas, roll-out and the pod template."""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.context import RenderContext
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata
from dsd_operator.render.pod_template import pod_template

_REVISION_HISTORY: Final = 3

_MIN_READY_SECONDS: Final = 5
"""A roll-out takes the next pod only after the new one has stood that long: some crash on their first requests."""

_DEADLINE_MARGIN_SECONDS: Final = 600
"""On top of the start-up time: scheduling, pulling an image of many gigabytes, attaching volumes."""


def deployment(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """The resource has passed `preflight`."""
    spec = resource.spec
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": child_metadata(resource),
        "spec": {
            "replicas": context.replicas(resource),
            "selector": {"matchLabels": selector(names_for(resource.metadata.name))},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": spec.rollout.max_surge, "maxUnavailable": spec.rollout.max_unavailable},
            },
            "minReadySeconds": _MIN_READY_SECONDS,
            "progressDeadlineSeconds": spec.startup.timeout_seconds + _DEADLINE_MARGIN_SECONDS,
            "revisionHistoryLimit": _REVISION_HISTORY,
            "template": pod_template(resource, context.runtime_image, context.fs_group),
        },
    }
