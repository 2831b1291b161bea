"""Remarks on the pods' shape that change no condition: GPUs nobody uses, memory or time that is missing, security."""

from collections.abc import Iterator
from typing import Any

from dsd_operator.api import DSDDeployment, Spec
from dsd_operator.api.quantity import parse
from dsd_operator.render.devices import engine_resources, spare
from dsd_operator.render.lifecycle import short_grace
from dsd_operator.render.owned import engine_container
from dsd_operator.render.pod_template import pod_template
from dsd_operator.render.restricted import restricted_violations


def pod_notes(resource: DSDDeployment) -> Iterator[str]:
    """The resource has passed `preflight`."""
    _, container = engine_container(resource.spec.pod_template)
    yield from spare(resource.spec, container)
    yield from _shared_memory(resource, engine_resources(resource.spec, container).get("limits", {}))
    yield from _grace(resource.spec)
    yield from _open(resource)


def _grace(spec: Spec) -> Iterator[str]:
    short = short_grace(spec)
    if short is not None:
        yield f"podTemplate.spec.terminationGracePeriodSeconds: {short}"


def _shared_memory(resource: DSDDeployment, limits: dict[str, Any]) -> Iterator[str]:
    size, memory = resource.spec.shared_memory.size_limit, limits.get("memory")
    if size is not None and memory is not None and parse(size) > parse(memory):
        yield f"sharedMemory.sizeLimit {size} counts against the memory limit, which is {memory}: no more fits"


def _open(resource: DSDDeployment) -> Iterator[str]:
    """Only the podTemplate can take a pod out of the restricted level."""
    if not resource.spec.pod_template.get("spec"):
        return
    violations = restricted_violations(pod_template(resource, "any")["spec"])
    if violations:
        yield (
            f"podTemplate takes the pods out of the restricted level of Pod Security ({', '.join(violations)}): a "
            "namespace that enforces it refuses them"
        )
