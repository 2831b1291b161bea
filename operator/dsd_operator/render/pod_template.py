"""The pod template: our pod, the user's podTemplate merged over it.

It is a function of the envelope alone. Neither the schedule nor replicas may reach it, or a hot change would restart
pods; a property test holds that for every resource.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dsd_operator.api import DSDDeployment, Spec
from dsd_operator.render.arguments import COMMAND, CONFIG_DIRECTORY, PORT, engine_arguments
from dsd_operator.render.environment import HOME, RUN_DIRECTORY, engine_environment
from dsd_operator.render.labels import labels
from dsd_operator.render.merge import merge
from dsd_operator.render.names import names_for
from dsd_operator.render.probes import PORT_NAME, probes
from dsd_operator.render.quantity import text
from dsd_operator.render.security import container_security_context, pod_security_context

ENGINE: Final = "engine"
CONFIG_VOLUME: Final = "dsd-config"
RUN_VOLUME: Final = "dsd-run"
_GRACE_SECONDS: Final = 60

_RUN_LIMIT: Final = "256Mi"
"""Holds the metrics' memory-mapped files; they count against the memory limit only as far as they are filled."""

_OUR_MOUNTS: Final = (
    {"name": CONFIG_VOLUME, "mountPath": CONFIG_DIRECTORY, "readOnly": True},
    {"name": RUN_VOLUME, "mountPath": RUN_DIRECTORY},
    {"name": "dsd-shm", "mountPath": "/dev/shm"},
    {"name": "dsd-tmp", "mountPath": "/tmp"},
    {"name": "dsd-home", "mountPath": HOME},
)


def pod_template(resource: DSDDeployment, runtime_image: str) -> dict[str, Any]:
    """The Deployment's `template`; the resource has passed `preflight`."""
    user = resource.spec.pod_template
    merged = merge(_pod_spec(resource, runtime_image), user.get("spec", {}))
    return {
        "metadata": _metadata(resource, user.get("metadata", {})),
        "spec": {**merged, "volumes": _mounted_volumes(merged)},
    }


def _metadata(resource: DSDDeployment, user: Mapping[str, Any]) -> dict[str, Any]:
    """The user's labels and annotations; our labels cannot be overridden, the Deployment selects by them."""
    return {
        "labels": {**user.get("labels", {}), **labels(names_for(resource.metadata.name))},
        "annotations": {"kubectl.kubernetes.io/default-container": ENGINE, **user.get("annotations", {})},
    }


def _pod_spec(resource: DSDDeployment, runtime_image: str) -> dict[str, Any]:
    names = names_for(resource.metadata.name)
    return {
        "serviceAccountName": names.base,
        "automountServiceAccountToken": False,
        # A Service called `vllm` would otherwise set VLLM_PORT to an address, which vLLM refuses to start with.
        "enableServiceLinks": False,
        "securityContext": pod_security_context(),
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "containers": [_engine(resource.spec, runtime_image)],
        "volumes": _volumes(resource.spec, names.base),
    }


def _engine(spec: Spec, runtime_image: str) -> dict[str, Any]:
    policy = spec.engine.image_pull_policy
    return {
        "name": ENGINE,
        "image": spec.engine.image or runtime_image,
        **({"imagePullPolicy": policy} if policy else {}),
        "command": list(COMMAND),
        "args": engine_arguments(spec),
        "env": engine_environment(spec),
        "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "resources": _resources(spec.resources),
        **probes(spec.startup.timeout_seconds),
        "securityContext": container_security_context(),
        # The last lines of a crashed engine's log become the message that the resource's status shows.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [dict(mount) for mount in _OUR_MOUNTS],
    }


def _resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    """The user's, amounts as strings: a number without quotes is a legal quantity."""
    return {
        section: {name: text(amount) for name, amount in value.items()} if isinstance(value, Mapping) else value
        for section, value in resources.items()
    }


def _volumes(spec: Spec, config_map: str) -> list[dict[str, Any]]:
    limit = spec.shared_memory.size_limit
    return [
        {"name": CONFIG_VOLUME, "configMap": {"name": config_map}},
        {"name": RUN_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": _RUN_LIMIT}},
        {"name": "dsd-shm", "emptyDir": {"medium": "Memory", **({} if limit is None else {"sizeLimit": text(limit)})}},
        {"name": "dsd-tmp", "emptyDir": {}},
        {"name": "dsd-home", "emptyDir": {}},
    ]


def _mounted_volumes(pod_spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Without the volumes of ours for which the user mounts something else; the user's own all stay."""
    ours = {mount["name"] for mount in _OUR_MOUNTS}
    used = {mount["name"] for container in _containers(pod_spec) for mount in container.get("volumeMounts", [])}
    return [volume for volume in pod_spec["volumes"] if volume["name"] in used or volume["name"] not in ours]


def _containers(pod_spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [*pod_spec.get("initContainers", []), *pod_spec["containers"]]
