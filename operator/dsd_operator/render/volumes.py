"""Volumes of the pods, and where the engine's container mounts them.

Everything that is written lies on one of them, because the root file system is read-only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.arguments import CONFIG_DIRECTORY
from dsd_operator.render.cache import claim_name
from dsd_operator.render.environment import CACHE_DIRECTORY, HOME, RUN_DIRECTORY
from dsd_operator.render.names import names_for
from dsd_operator.render.quantity import text

CONFIG_VOLUME: Final = "dsd-config"
RUN_VOLUME: Final = "dsd-run"
CACHE_VOLUME: Final = "dsd-cache"
_SHARED_MEMORY: Final = "dsd-shm"

SHARED_MEMORY_DEFAULT: Final = "8Gi"
"""Enough for NCCL and for vLLM's queues between eight workers; a limit, because a memory-backed volume without one may
take all that the node has. Kubernetes lowers it to the container's memory limit."""

_RUN_LIMIT: Final = "256Mi"
"""Holds the metrics' memory-mapped files; they count against the memory limit only as far as they are filled."""

_MOUNTS: Final = (
    {"name": CONFIG_VOLUME, "mountPath": CONFIG_DIRECTORY, "readOnly": True},
    {"name": RUN_VOLUME, "mountPath": RUN_DIRECTORY},
    {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"},
    {"name": "dsd-tmp", "mountPath": "/tmp"},
    {"name": "dsd-home", "mountPath": HOME},
)
_CACHE_MOUNT: Final = {"name": CACHE_VOLUME, "mountPath": CACHE_DIRECTORY}
_OURS: Final = frozenset(mount["name"] for mount in (*_MOUNTS, _CACHE_MOUNT))


def mounts(resource: DSDDeployment) -> list[dict[str, Any]]:
    """`volumeMounts` of the engine's container."""
    found = [dict(mount) for mount in _MOUNTS]
    return [*found, dict(_CACHE_MOUNT)] if resource.spec.cache.on_claim else found


def volumes(resource: DSDDeployment) -> list[dict[str, Any]]:
    """`volumes` of the pod."""
    limit, claim = resource.spec.shared_memory.size_limit, claim_name(resource)
    shared_memory = {"medium": "Memory", "sizeLimit": text(SHARED_MEMORY_DEFAULT if limit is None else limit)}
    return [
        {"name": CONFIG_VOLUME, "configMap": {"name": names_for(resource.metadata.name).base}},
        {"name": RUN_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": _RUN_LIMIT}},
        {"name": _SHARED_MEMORY, "emptyDir": shared_memory},
        {"name": "dsd-tmp", "emptyDir": {}},
        {"name": "dsd-home", "emptyDir": {}},
        *([{"name": CACHE_VOLUME, "persistentVolumeClaim": {"claimName": claim}}] if claim else []),
    ]


def mounted(pod_spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Without the volumes of ours for which the user mounts something else; the user's own all stay."""
    used = {mount["name"] for container in _containers(pod_spec) for mount in container.get("volumeMounts", [])}
    return [volume for volume in pod_spec["volumes"] if volume["name"] in used or volume["name"] not in _OURS]


def _containers(pod_spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [*pod_spec.get("initContainers", []), *pod_spec["containers"]]
