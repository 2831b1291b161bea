"""The pod template: our pod, the user's podTemplate merged over it.

It is a function of the envelope alone. Neither the schedule nor replicas may reach it, or a hot change would restart
pods; a property test holds that for every resource.
"""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment, Spec
from dsd_operator.render.arguments import COMMAND, PORT, engine_arguments
from dsd_operator.render.environment import engine_environment
from dsd_operator.render.labels import all_pods, labels, selector
from dsd_operator.render.lifecycle import grace_seconds, lifecycle
from dsd_operator.render.merge import merge
from dsd_operator.render.names import names_for
from dsd_operator.render.probes import PORT_NAME, probes
from dsd_operator.render.quantity import text
from dsd_operator.render.security import pod_security_context, secured
from dsd_operator.render.volumes import mounted, mounts, volumes

ENGINE: Final = "engine"
RESTARTED_AT: Final = "dsd-operator.io/restarted-at"
"""Annotation with `rollout.restartedAt`: pods that differ in nothing else are made anew."""


def pod_template(resource: DSDDeployment, runtime_image: str, fs_group: int | None = None) -> dict[str, Any]:
    """The Deployment's `template`; the resource has passed `preflight`.

    `fs_group` is the group that gets the files of a cache's claim where the resource names none.
    """
    user = resource.spec.pod_template
    merged = secured(merge(_pod_spec(resource, runtime_image, fs_group), user.get("spec", {})), ENGINE)
    return {
        "metadata": _metadata(resource, user.get("metadata", {})),
        "spec": {**merged, **_spread(merged, resource), "volumes": mounted(merged)},
    }


def _metadata(resource: DSDDeployment, user: Mapping[str, Any]) -> dict[str, Any]:
    """The user's labels and annotations; our labels cannot be overridden, the Deployment selects by them."""
    restarted = resource.spec.rollout.restarted_at
    ours = {"kubectl.kubernetes.io/default-container": ENGINE, **({RESTARTED_AT: restarted} if restarted else {})}
    return {
        "labels": {**user.get("labels", {}), **labels(names_for(resource.metadata.name))},
        "annotations": {**ours, **user.get("annotations", {})},
    }


def _spread(pod_spec: Mapping[str, Any], resource: DSDDeployment) -> dict[str, Any]:
    """Topology spread constraints that name no pods are about ours; to Kubernetes they would be about none.

    A worker has another name than its leader, and is to count itself.
    """
    constraints = pod_spec.get("topologySpreadConstraints", [])
    ours = all_pods if resource.spec.engine.nodes > 1 else selector
    own = {"labelSelector": {"matchLabels": ours(names_for(resource.metadata.name))}}
    found = [constraint if "labelSelector" in constraint else {**constraint, **own} for constraint in constraints]
    return {"topologySpreadConstraints": found} if found else {}


def _pod_spec(resource: DSDDeployment, runtime_image: str, fs_group: int | None) -> dict[str, Any]:
    names = names_for(resource.metadata.name)
    return {
        "serviceAccountName": names.base,
        "automountServiceAccountToken": False,
        # A Service called `vllm` would otherwise set VLLM_PORT to an address, which vLLM refuses to start with.
        "enableServiceLinks": False,
        "securityContext": pod_security_context(_group(resource.spec, fs_group)),
        "terminationGracePeriodSeconds": grace_seconds(resource.spec),
        "containers": [_engine(resource, runtime_image)],
        "volumes": volumes(resource),
    }


def _group(spec: Spec, default: int | None) -> int | None:
    """The group of a claim's files, None where nobody is to set one. No claim needs no group."""
    if not spec.cache.on_claim:
        return None
    return (default if spec.cache.fs_group is None else spec.cache.fs_group) or None


def _engine(resource: DSDDeployment, runtime_image: str) -> dict[str, Any]:
    spec = resource.spec
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
        "lifecycle": lifecycle(spec),
        # The last lines of a crashed engine's log become the message that the resource's status shows.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts(resource),
    }


def _resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    """The user's, amounts as strings: a number without quotes is a legal quantity. What was emptied is left out."""
    return {
        section: {name: text(amount) for name, amount in value.items()} if isinstance(value, Mapping) else value
        for section, value in resources.items()
        if value
    }
