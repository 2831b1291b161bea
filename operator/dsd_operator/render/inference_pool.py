"""The InferencePool: how a Gateway's endpoint picker finds the engines. A kind that a cluster may not have."""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.arguments import PORT
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata

GROUP: Final = "inference.networking.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "InferencePool"


def is_wanted(resource: DSDDeployment) -> bool:
    """Whether the resource asks for one; the API server has seen to it that it names an endpoint picker then."""
    pool = resource.spec.gateway.inference_pool
    return pool.enabled and pool.endpoint_picker is not None


def inference_pool(resource: DSDDeployment) -> dict[str, Any]:
    """All pods that answer; the picker looks itself which of them are ready."""
    picker = resource.spec.gateway.inference_pool.endpoint_picker
    if picker is None:
        raise ValueError("the resource names no endpoint picker")
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": child_metadata(resource),
        "spec": {
            "selector": {"matchLabels": selector(names_for(resource.metadata.name))},
            "targetPorts": [{"number": PORT}],
            "endpointPickerRef": {
                "kind": "Service",
                "name": picker.name,
                "port": {"number": picker.port},
                "failureMode": picker.failure_mode,
            },
        },
    }
