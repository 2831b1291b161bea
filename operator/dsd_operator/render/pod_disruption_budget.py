"""The PodDisruptionBudget: how many pods an eviction (the drain of a node) may take at once.

By `maxUnavailable`, never `minAvailable`: one replica and a minimum of one is a node that cannot be drained. And pods
that are not ready may always go: an engine that loads for an hour or crashes for ever holds up no drain.
"""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.labels import all_pods
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata

API_VERSION: Final = "policy/v1"
KIND: Final = "PodDisruptionBudget"


def pod_disruption_budget(resource: DSDDeployment) -> dict[str, Any]:
    """About all pods of the resource: an engine over several nodes stops with any one of its pods."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": child_metadata(resource),
        "spec": {
            "maxUnavailable": resource.spec.pod_disruption_budget.max_unavailable,
            "selector": {"matchLabels": all_pods(names_for(resource.metadata.name))},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
