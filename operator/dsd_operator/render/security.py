"""Security contexts that the restricted level of Pod Security admits; `restricted` has the checker.

No user or group id is set, but for the group of a cache's files: OpenShift hands out its own ids and refuses ours, and
the runtime image names a numeric user.
"""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.render.merge import merge

_RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What the restricted level asks of every container."""

_ENGINE: Final = {**_RESTRICTED, "readOnlyRootFilesystem": True}
"""The engine writes to volumes only; of other people's containers nobody can know that."""

_ADMINISTRATOR: Final = frozenset({"SYS_ADMIN", "CAP_SYS_ADMIN"})


def pod_security_context(fs_group: int | None) -> dict[str, Any]:
    """For the pod. OnRootMismatch spares large caches the walk when somebody (we, OpenShift, the user) sets fsGroup."""
    return {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroupChangePolicy": "OnRootMismatch",
        **({} if fs_group is None else {"fsGroup": fs_group}),
    }


def secured(pod_spec: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """`pod_spec` with the defaults filled into each container, init containers and sidecars included.

    What the user set stays: whoever needs more than the restricted level says so in the container.
    """
    made = dict(pod_spec)
    for field in ("initContainers", "containers"):
        if field in pod_spec:
            made[field] = [_secured(container, engine) for container in pod_spec[field]]
    return made


def _secured(container: Mapping[str, Any], engine: str) -> dict[str, Any]:
    users = container.get("securityContext", {})
    defaults = dict(_ENGINE if container["name"] == engine else _RESTRICTED)
    added = set(users.get("capabilities", {}).get("add", []))
    if users.get("privileged") is True or added & _ADMINISTRATOR:
        del defaults["allowPrivilegeEscalation"]  # Kubernetes refuses False beside these
    return {**container, "securityContext": merge(defaults, users)}
