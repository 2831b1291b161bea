"""The HTTPRoute: from a Gateway to the engines. A kind that a cluster may not have.

Only what clients of the model need is routed. The engine's other paths (metrics, the schedule) stay inside the cluster.
"""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render import inference_pool
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata

API_VERSION: Final = "gateway.networking.k8s.io/v1"
KIND: Final = "HTTPRoute"
_PREFIX: Final = "/v1"


def is_wanted(resource: DSDDeployment) -> bool:
    """Whether the resource asks for one."""
    return resource.spec.gateway.http_route.enabled


def http_route(resource: DSDDeployment) -> dict[str, Any]:
    """To the InferencePool if the resource has one, so that its picker chooses; else to the Service."""
    wanted = resource.spec.gateway.http_route
    match = {"path": {"type": "PathPrefix", "value": _PREFIX}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": child_metadata(resource),
        "spec": {
            "parentRefs": [p.model_dump(by_alias=True, exclude_none=True) for p in wanted.parent_refs],
            **({"hostnames": list(wanted.hostnames)} if wanted.hostnames else {}),
            "rules": [{"matches": [match], "backendRefs": [_backend(resource)]}],
        },
    }


def _backend(resource: DSDDeployment) -> dict[str, Any]:
    name = names_for(resource.metadata.name).base
    if inference_pool.is_wanted(resource):
        return {"group": inference_pool.GROUP, "kind": inference_pool.KIND, "name": name}
    return {"kind": "Service", "name": name, "port": resource.spec.service.port}
