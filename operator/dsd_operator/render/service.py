"""The Service in front of the engines."""

from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.service import Service
from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata
from dsd_operator.render.probes import PORT_NAME

_ONE_FAMILY: Final = "SingleStack"
"""Kubernetes' own default."""


def service(resource: DSDDeployment) -> dict[str, Any]:
    """One port, by name, to every ready pod."""
    wanted, metadata = resource.spec.service, child_metadata(resource)
    annotations = {"annotations": dict(wanted.annotations)} if wanted.annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "labels": {**wanted.labels, **metadata["labels"]}, **annotations},
        "spec": {
            "type": wanted.type,
            "selector": selector(names_for(resource.metadata.name)),
            "ports": [_port(wanted)],
            **_options(wanted),
        },
    }


def url(resource: DSDDeployment) -> str:
    """Where clients inside the cluster find the engines; ends in .svc, so that it fits any cluster domain."""
    host = f"{names_for(resource.metadata.name).base}.{resource.metadata.namespace}.svc"
    return f"http://{host}:{resource.spec.service.port}"


def _port(wanted: Service) -> dict[str, Any]:
    """By name to the container's: what listens there is the engine's affair."""
    port = {"name": PORT_NAME, "port": wanted.port, "targetPort": PORT_NAME, "protocol": "TCP"}
    return port | ({"nodePort": wanted.node_port} if wanted.node_port is not None else {})


def _options(wanted: Service) -> dict[str, Any]:
    """What the user set; what they did not is Kubernetes' to choose and to keep (clusterIP, node ports).

    Of a policy that is no longer set Kubernetes keeps the value, unlike its other defaults, so this one always stands.
    """
    ranges = wanted.load_balancer_source_ranges
    given = {
        "ipFamilyPolicy": wanted.ip_family_policy or _ONE_FAMILY,
        "externalTrafficPolicy": wanted.external_traffic_policy,
        "loadBalancerClass": wanted.load_balancer_class,
        "loadBalancerSourceRanges": list(ranges) if ranges else None,
    }
    return {name: value for name, value in given.items() if value is not None}
