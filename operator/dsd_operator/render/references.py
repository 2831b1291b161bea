"""Names in a rendered pod that must name something in it: the API server would refuse the pod in its own words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_runtime.schedule import Problem

_TEMPLATE: Final = "spec.podTemplate.spec"
_LISTS: Final = ("initContainers", "containers")

PodSpec = Mapping[str, Any]


def reference_problems(pod_spec: PodSpec) -> Iterator[Problem]:
    """`pod_spec` is rendered from a well-shaped podTemplate."""
    volumes = {volume["name"] for volume in pod_spec["volumes"]}
    claims = {claim["name"] for claim in pod_spec.get("resourceClaims", [])}
    for field in _LISTS:
        for container in pod_spec.get(field, []):
            path = f"{_TEMPLATE}.{field}[name={container['name']}]"
            yield from _image(container, path)
            yield from _mounts(container, volumes, path)
            yield from _claims(container, claims, path)


def _image(container: PodSpec, path: str) -> Iterator[Problem]:
    if "image" not in container:
        yield Problem(f"{path}.image", f"is missing; the engine's own container is called {ENGINE}")


def _mounts(container: PodSpec, volumes: set[str], path: str) -> Iterator[Problem]:
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            yield Problem(f"{path}.volumeMounts", f"no volume is called {mount['name']}; add it to {_TEMPLATE}.volumes")


def _claims(container: PodSpec, claims: set[str], path: str) -> Iterator[Problem]:
    place = "spec.resources.claims" if container["name"] == ENGINE else f"{path}.resources.claims"
    for claim in container.get("resources", {}).get("claims", []):
        if claim["name"] not in claims:
            yield Problem(place, f"no claim of the pod is called {claim['name']}; add it to {_TEMPLATE}.resourceClaims")
