"""The PodMonitor: how the Prometheus operator's Prometheus finds the engines. A kind that a cluster may not have."""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata
from dsd_operator.render.probes import PORT_NAME

API_VERSION: Final = "monitoring.coreos.com/v1"
KIND: Final = "PodMonitor"
_PATH: Final = "/metrics"


def pod_monitor(resource: DSDDeployment) -> dict[str, Any]:
    """All pods, ready or not: what an engine counts before it is ready is worth as much."""
    wanted = resource.spec.monitoring.pod_monitor
    metadata = child_metadata(resource)
    endpoint = {"port": PORT_NAME, "path": _PATH, "relabelings": _relabelings(resource)}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {**metadata, "labels": {**wanted.labels, **metadata["labels"]}},
        "spec": {
            "selector": {"matchLabels": selector(names_for(resource.metadata.name))},
            "podMetricsEndpoints": [endpoint | ({"interval": wanted.interval} if wanted.interval else {})],
        },
    }


def _relabelings(resource: DSDDeployment) -> list[dict[str, str]]:
    """The resource's name and namespace, as the operator's own metrics spell them, so that the two can be joined.

    `namespace` and `pod` come from the Prometheus operator; a model's name cannot tell two deployments of it apart.
    """
    values = {"dsd_namespace": resource.metadata.namespace, "dsd_name": resource.metadata.name}
    return [{"action": "replace", "targetLabel": label, "replacement": value} for label, value in values.items()]
