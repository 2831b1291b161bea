"""Where the API server keeps each kind that this command reads."""

from typing import Final
from urllib.parse import quote

from dsd_operator.api.constants import API_VERSION, KIND, PLURAL

DEPLOYMENT: Final = KIND
"""Our own kind, not that of the group apps."""

_APPS: Final = "/apis/apps/v1"
_CORE: Final = "/api/v1"

_PATHS: Final = {
    KIND: (f"/apis/{API_VERSION}", PLURAL),
    "Deployment": (_APPS, "deployments"),
    "ReplicaSet": (_APPS, "replicasets"),
    "ControllerRevision": (_APPS, "controllerrevisions"),
    "ConfigMap": (_CORE, "configmaps"),
    "Event": (_CORE, "events"),
    "Namespace": (_CORE, "namespaces"),
    "Node": (_CORE, "nodes"),
    "Pod": (_CORE, "pods"),
    "ResourceQuota": (_CORE, "resourcequotas"),
    "Service": (_CORE, "services"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
}


def path(kind: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """The path of an object, or of the list of all (namespace None: cluster-wide, or a kind without namespaces)."""
    prefix, plural = _PATHS[kind]
    parts = [prefix, *(["namespaces", quote(namespace, safe="")] if namespace else []), plural]
    if name:
        parts.append(quote(name, safe=""))
    return "/".join([*parts, *([subresource] if subresource else [])])


def words(kind: str) -> str:
    """A kind as it is named in messages and rights: its resource."""
    return _PATHS[kind][1]
