"""The workload: what makes and keeps the pods of a resource. A Deployment, or a LeaderWorkerSet for several nodes."""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.context import RenderContext
from dsd_operator.render.deployment import deployment
from dsd_operator.render.pod_template import pod_template

KINDS: Final = ("Deployment", groups.KIND)

ADVICE: Final = {groups.KIND: groups.ADVICE}
"""What to do where the cluster does not know the kind."""


def kind_of(resource: DSDDeployment) -> str:
    """The kind that the resource asks for."""
    return groups.KIND if groups.is_wanted(resource) else "Deployment"


def workload(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """The manifest; the resource has passed `preflight`."""
    made = groups.leader_worker_set if groups.is_wanted(resource) else deployment
    return made(resource, context, context.pods if context.pods is not None else pods_of(resource, context))


def pods_of(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """The part of the workload's spec that restarts pods when it changes, as this version of the operator renders it.

    A function of the envelope and of the operator alone. What was rendered for an envelope once is kept
    (`render.history`) and goes on being used: then it is `context.pods`.
    """
    template = pod_template(resource, context.runtime_image, context.fs_group)
    return groups.pods(resource, template) if groups.is_wanted(resource) else {"template": template}


def accounts(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The ServiceAccounts that the pods of a workload run as; a podTemplate may name one that is not ours."""
    spec = manifest["spec"]
    templates = groups.templates(spec) if manifest["kind"] == groups.KIND else (spec["template"],)
    return frozenset(str(template["spec"].get("serviceAccountName", "")) for template in templates)
