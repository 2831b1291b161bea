"""What is wrong with a resource that the API server accepted: the rules CEL cannot express, before a pod is made.

Two groups, because the hot path stands alone: a bad podTemplate must not hold up a schedule.
"""

from collections.abc import Iterator

from dsd_operator.api import DSDDeployment
from dsd_operator.render.owned import engine_container, owned_problems
from dsd_operator.render.quantity import parse, resource_problems
from dsd_operator.render.shapes import POD_TEMPLATE, shape_problems
from dsd_runtime.schedule import Problem, validate


def problems(resource: DSDDeployment) -> list[Problem]:
    """Everything that is wrong, paths as the user writes them (`spec.engine.extraArgs[0]`); empty when all is well."""
    return [*schedule_problems(resource), *envelope_problems(resource)]


def schedule_problems(resource: DSDDeployment) -> list[Problem]:
    """Why the schedule cannot be used with this drafter; then it goes into no ConfigMap and to no pod."""
    spec = resource.spec
    found = validate(spec.schedule, spec.drafter.num_speculative_tokens)
    return [Problem(f"spec.schedule{p.field.removeprefix('ranges')}", p.message) for p in found]


def envelope_problems(resource: DSDDeployment) -> list[Problem]:
    """Why no pods can be made from this resource; running pods and their schedule go on."""
    return [*_template_problems(resource), *_quantity_problems(resource)]


def _template_problems(resource: DSDDeployment) -> list[Problem]:
    template, path = resource.spec.pod_template, "spec.podTemplate"
    misshapen = list(shape_problems(template, POD_TEMPLATE, path))
    if misshapen:
        return misshapen
    place, engine = engine_container(template)
    resources = resource_problems(engine.get("resources", {}), f"{path}.{place}.resources")
    return [*owned_problems(template, path), *resources]


def _quantity_problems(resource: DSDDeployment) -> Iterator[Problem]:
    yield from resource_problems(resource.spec.resources, "spec.resources")
    limit = resource.spec.shared_memory.size_limit
    if limit is None:
        return
    try:
        parse(limit)
    except ValueError as error:
        yield Problem("spec.sharedMemory.sizeLimit", str(error))
