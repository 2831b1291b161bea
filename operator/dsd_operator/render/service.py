"""The Service in front of the engines."""

from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.render.arguments import PORT
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata
from dsd_operator.render.probes import PORT_NAME


def service(resource: DSDDeployment) -> dict[str, Any]:
    """One port, by name, to every ready pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(resource),
        "spec": {
            "selector": selector(names_for(resource.metadata.name)),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
    }


def url(resource: DSDDeployment) -> str:
    """Where clients inside the cluster find the engines; ends in .svc, so that it fits any cluster domain."""
    return f"http://{names_for(resource.metadata.name).base}.{resource.metadata.namespace}.svc:{PORT}"
