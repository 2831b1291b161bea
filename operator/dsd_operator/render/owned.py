"""What of the pod belongs to the operator: the podTemplate may not set it, and the message says what to use instead."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dsd_operator.render.arguments import CONFIG_DIRECTORY
from dsd_operator.render.environment import RUN_DIRECTORY
from dsd_operator.render.pod_template import ENGINE
from dsd_operator.render.shapes import directory
from dsd_operator.render.volumes import CONFIG_VOLUME, RUN_VOLUME
from dsd_runtime.schedule import Problem

_CONTAINER_FIELDS: Final = {
    "image": "set spec.engine.image instead",
    "command": "the operator starts dsd-serve; put arguments of vLLM into spec.engine.extraArgs",
    "args": "put arguments of vLLM into spec.engine.extraArgs",
}
_METADATA: Final = frozenset({"labels", "annotations"})
_DIRECTORIES: Final = (CONFIG_DIRECTORY, RUN_DIRECTORY)
_VOLUMES: Final = frozenset({CONFIG_VOLUME, RUN_VOLUME})


def owned_problems(template: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Everything in a well-shaped podTemplate that the operator does not let go of."""
    spec = template.get("spec", {})
    for field in template.get("metadata", {}).keys() - _METADATA:
        yield Problem(f"{path}.metadata.{field}", "is not used in pods; only labels and annotations are")
    if spec.get("enableServiceLinks") is True:
        yield Problem(f"{path}.spec.enableServiceLinks", "must stay off: a Service called vllm would stop every engine")
    yield from _volume_problems(spec.get("volumes", []), f"{path}.spec.volumes")
    place, engine = engine_container(template)
    yield from _engine_problems(engine, f"{path}.{place}")


def engine_container(template: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The engine's entry in a well-shaped podTemplate with its path in it; an empty one where there is none."""
    for index, container in enumerate(template.get("spec", {}).get("containers", [])):
        if container["name"] == ENGINE:
            return f"spec.containers[{index}]", container
    return "spec.containers", {}


def _volume_problems(volumes: Sequence[Mapping[str, Any]], path: str) -> Iterator[Problem]:
    for index, volume in enumerate(volumes):
        if volume["name"] in _VOLUMES:
            yield Problem(
                f"{path}[{index}].name", f"{volume['name']} is the operator's own volume; choose another name"
            )


def _engine_problems(container: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for field, advice in _CONTAINER_FIELDS.items():
        if field in container:
            yield Problem(f"{path}.{field}", f"belongs to the operator; {advice}")
    for index, mount in enumerate(container.get("volumeMounts", [])):
        target = directory(mount["mountPath"]) + "/"
        if any(target.startswith(f"{ours}/") for ours in _DIRECTORIES):
            yield Problem(
                f"{path}.volumeMounts[{index}].mountPath",
                f"{mount['mountPath']} belongs to the runtime, which keeps its configuration and metrics there",
            )
