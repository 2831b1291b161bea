"""What is wrong with a resource that the API server accepted: the rules CEL cannot express, before a pod is made.

Two groups, because the hot path stands alone: a bad podTemplate must not hold up a schedule.
"""

from collections.abc import Iterator

from dsd_operator.api import DSDDeployment, Spec
from dsd_operator.api.quantity import parse
from dsd_operator.render.budget import lora_problems
from dsd_operator.render.devices import device_problems
from dsd_operator.render.owned import engine_container, owned_problems
from dsd_operator.render.pod_template import pod_template
from dsd_operator.render.quantity import resource_problems
from dsd_operator.render.references import reference_problems
from dsd_operator.render.shapes import POD_TEMPLATE, shape_problems
from dsd_operator.render.synthetic import synthetic_problems
from dsd_operator.render.verdict import verdict_of
from dsd_runtime.options import owned_problems as option_problems
from dsd_runtime.owned import env_problems
from dsd_runtime.parameters import parameter_problems
from dsd_runtime.schedule import Problem, validate


def problems(resource: DSDDeployment) -> list[Problem]:
    """Everything that is wrong, paths as the user writes them (`spec.engine.extraArgs[0]`); empty when all is well."""
    return [*schedule_problems(resource), *envelope_problems(resource)]


def schedule_problems(resource: DSDDeployment) -> list[Problem]:
    """Why the schedule cannot be used with this drafter; then it goes into no ConfigMap and to no pod."""
    spec = resource.spec
    found = validate(spec.schedule, spec.drafter.num_speculative_tokens)
    malformed = [Problem(f"spec.schedule{p.field.removeprefix('ranges')}", p.message) for p in found]
    return malformed or list(_unsupported_ranges(spec))


def envelope_problems(resource: DSDDeployment) -> list[Problem]:
    """Why no pods can be made from this resource; running pods and their schedule go on."""
    spec = resource.spec
    found = [
        *_drafter_problems(spec),
        *synthetic_problems(spec),
        *option_problems(spec.engine.extra_args),
        *lora_problems(spec),
        *env_problems(variable.name for variable in spec.engine.env),
        *_template_problems(spec),
        *_quantity_problems(spec),
    ]
    return found or list(_pod_problems(resource))


def _unsupported_ranges(spec: Spec) -> Iterator[Problem]:
    reasons = verdict_of(spec).reasons
    for index, item in enumerate(spec.schedule):
        reason = reasons.get(item.num_speculative_tokens)
        if reason is not None:
            yield Problem(
                f"spec.schedule[{index}].numSpeculativeTokens", f"K={item.num_speculative_tokens} is refused: {reason}"
            )


def _drafter_problems(spec: Spec) -> Iterator[Problem]:
    drafter, verdict = spec.drafter, verdict_of(spec)
    yield from parameter_problems(drafter.parameters, drafter.method, spec.engine.model_runner)
    if not verdict.allowed:
        yield Problem("spec.drafter.method", next(iter(verdict.reasons.values())))
        return
    for index, k in enumerate(drafter.prepared_tokens or ()):
        if k not in verdict.allowed:
            reason = verdict.reasons.get(k, f"it is above the maximum of {drafter.num_speculative_tokens}")
            yield Problem(f"spec.drafter.preparedTokens[{index}]", f"K={k} cannot be prepared: {reason}")


def _template_problems(spec: Spec) -> list[Problem]:
    template, path = spec.pod_template, "spec.podTemplate"
    misshapen = list(shape_problems(template, POD_TEMPLATE, path))
    if misshapen:
        return misshapen
    place, engine = engine_container(template)
    resources = resource_problems(engine.get("resources", {}), f"{path}.{place}.resources")
    names = [variable["name"] for variable in engine.get("env", [])]
    return [*owned_problems(template, path), *env_problems(names, f"{path}.{place}.env"), *resources]


def _pod_problems(resource: DSDDeployment) -> Iterator[Problem]:
    """What is wrong with the pod as a whole; every part of it is sound."""
    _, engine = engine_container(resource.spec.pod_template)
    yield from device_problems(resource.spec, engine)
    yield from reference_problems(pod_template(resource, "any")["spec"])


def _quantity_problems(spec: Spec) -> Iterator[Problem]:
    yield from resource_problems(spec.resources, "spec.resources")
    limit = spec.shared_memory.size_limit
    if limit is None:
        return
    try:
        parse(limit)
    except ValueError as error:
        yield Problem("spec.sharedMemory.sizeLimit", str(error))
