"""GPUs: how many one pod asks for, and how many vLLM's workers in it need. Pure.

Only device-plugin resources that count whole GPUs, or parts of one that a worker uses like a whole one, are known here.
What a resource claim brings nobody can tell before it is allocated; a pod that asks for none runs on CPUs, or on GPUs
that a runtime class shows it.
"""

import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.api.quantity import parse
from dsd_operator.render.budget import option_value
from dsd_operator.render.merge import merge
from dsd_runtime.convert.numbers import human
from dsd_runtime.schedule import Problem

_GPU: Final = re.compile(
    r"nvidia\.com/(gpu(\.shared)?|mig-.+)|amd\.com/(gpu|[a-z]+_nps\d)|gpu\.intel\.com/(i915|xe)|habana\.ai/gaudi|"
    r"google\.com/tpu"
)
"""Names that the vendors' device plugins register."""


def engine_resources(spec: Spec, container: Mapping[str, Any]) -> dict[str, Any]:
    """`resources` of the engine; `container` is its entry in the podTemplate."""
    return merge(spec.resources, container.get("resources", {}))


def asked(resources: Mapping[str, Any]) -> int | None:
    """GPUs that a container with these (sound) `resources` gets; None where nobody can tell."""
    if resources.get("claims"):
        return None
    limits = resources.get("limits", {})
    return int(sum(parse(amount) for name, amount in limits.items() if _GPU.fullmatch(name))) or None


def needed(spec: Spec) -> int:
    """Workers of one pod, each with a GPU of its own: tensor parallel ranks times those of prefill context parallelism,
    over the nodes of the engine (vLLM: `ParallelConfig.world_size`)."""
    contexts = human(option_value(spec.engine.extra_args, "--prefill-context-parallel-size") or "1") or 1
    return ceil((spec.engine.tensor_parallel_size or 1) * contexts / spec.engine.nodes)


def device_problems(spec: Spec, container: Mapping[str, Any]) -> Iterator[Problem]:
    """Too few GPUs, with which vLLM would load for a while and then end; devices where nobody can ask for them."""
    resources = engine_resources(spec, container)
    limits = resources.get("limits", {})
    for name, amount in resources.get("requests", {}).items():
        if "/" in name and parse(amount) != parse(limits.get(name, 0)):
            yield Problem(f"spec.resources.requests.{name}", f"devices are asked for in limits: {name}: {amount}")
    there, wanted = asked(resources), needed(spec)
    if there is not None and there < wanted:
        yield Problem(
            "spec.engine.tensorParallelSize",
            f"{_workers(spec, wanted)}, and the engine asks for {there} ({_listed(resources)}); ask for {wanted} in "
            f"spec.resources.limits, or lower tensorParallelSize",
        )


def spare(spec: Spec, container: Mapping[str, Any]) -> Iterator[str]:
    """A remark where a pod holds GPUs that no worker uses."""
    resources = engine_resources(spec, container)
    there, wanted = asked(resources), needed(spec)
    if there is not None and there > wanted:
        yield (
            f"{there} GPUs are asked for ({_listed(resources)}) and {wanted} used: tensorParallelSize is "
            f"{spec.engine.tensor_parallel_size or 1}"
        )


def _workers(spec: Spec, wanted: int) -> str:
    size = spec.engine.tensor_parallel_size or 1
    over = f" over {spec.engine.nodes} nodes" if spec.engine.nodes > 1 else ""
    return f"{size}{over} needs {wanted} GPUs in each pod"


def _listed(resources: Mapping[str, Any]) -> str:
    limits = resources.get("limits", {})
    return ", ".join(f"{name}: {amount}" for name, amount in limits.items() if _GPU.fullmatch(name))
