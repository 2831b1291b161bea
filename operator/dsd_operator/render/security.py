"""Security contexts that the restricted level of Pod Security admits, and a checker for it.

No user or group id is set: OpenShift hands out its own and refuses ours, and the runtime image names a numeric user.
The checker states the rules of the restricted level (Kubernetes documentation, "Pod Security Standards") for pods of
Linux nodes; tests hold every rendered pod against it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_POD_VOLUMES: Final = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
_HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC")
_SECCOMP: Final = frozenset({"RuntimeDefault", "Localhost"})


def pod_security_context() -> dict[str, Any]:
    """For the pod. OnRootMismatch spares large caches the walk when something (OpenShift, the user) sets fsGroup."""
    return {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroupChangePolicy": "OnRootMismatch",
    }


def container_security_context() -> dict[str, Any]:
    """For the engine's container. Everything it writes goes to emptyDir volumes."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def restricted_violations(pod_spec: Mapping[str, Any]) -> list[str]:
    """What of `pod_spec` a namespace that enforces the restricted level would refuse; empty when admitted."""
    return [*_pod_violations(pod_spec), *_volume_violations(pod_spec), *_container_violations(pod_spec)]


def _pod_violations(pod_spec: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{name} is set" for name in _HOST_FIELDS if pod_spec.get(name))
    context = pod_spec.get("securityContext", {})
    if context.get("runAsUser") == 0:
        yield "the pod runs as user 0"
    if context.get("sysctls"):
        yield "the pod sets sysctls"


def _volume_violations(pod_spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in pod_spec.get("volumes", []):
        refused = volume.keys() - {"name"} - _POD_VOLUMES
        if refused:
            yield f"volume {volume['name']} is a {', '.join(sorted(refused))}"


def _container_violations(pod_spec: Mapping[str, Any]) -> Iterator[str]:
    pod_context = pod_spec.get("securityContext", {})
    for container in [*pod_spec.get("initContainers", []), *pod_spec.get("containers", [])]:
        for violation in _one_container(container, pod_context):
            yield f"container {container['name']}: {violation}"


def _one_container(container: Mapping[str, Any], pod_context: Mapping[str, Any]) -> Iterator[str]:
    context = {**pod_context, **container.get("securityContext", {})}
    capabilities = context.get("capabilities", {})
    rules = {
        "is privileged": context.get("privileged") is True,
        "may escalate privileges": context.get("allowPrivilegeEscalation") is not False,
        "does not drop all capabilities": "ALL" not in capabilities.get("drop", []),
        "adds capabilities": bool(set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}),
        "may run as root": context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0,
        "has no seccomp profile": context.get("seccompProfile", {}).get("type") not in _SECCOMP,
        "unmasks /proc": context.get("procMount", "Default") != "Default",
        "takes host ports": any(port.get("hostPort") for port in container.get("ports", [])),
    }
    yield from (text for text, broken in rules.items() if broken)
