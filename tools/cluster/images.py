"""All images a node needs, built and pushed; with an existing cluster, the references the user gives."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import base_images, buildah, debian, image_cleanup, locks, paths, project_images, registry
from tools.cluster.base_images import BaseImages
from tools.cluster.errors import ClusterError
from tools.cluster.project_images import ProjectImage

_VARIABLES = {"operator": "DSD_OPERATOR_IMAGE", "runtime": "DSD_RUNTIME_IMAGE"}


@dataclass(frozen=True)
class Images:
    """References that the cluster's nodes can pull."""

    operator: str
    runtime: str


def from_environment(environment: Mapping[str, str] = os.environ) -> Images | None:
    """The user's images for an existing cluster (``DSD_KUBECONFIG``); None where the local node is used.

    Raises ClusterError if the cluster is the user's and the images are not named.
    """
    if not environment.get("DSD_KUBECONFIG"):
        return None
    missing = [name for name in _VARIABLES.values() if not environment.get(name)]
    if missing:
        raise ClusterError(
            f"DSD_KUBECONFIG names an existing cluster, so {' and '.join(missing)} must name images that it can pull: "
            "build them from the Dockerfile (targets operator and runtime) and push them to a registry of yours"
        )
    return Images(**{target: environment[name] for target, name in _VARIABLES.items()})


def current() -> Images:
    """What the images of the tree as it is now are called; they may not be built yet."""
    given = from_environment()
    if given is not None:
        return given
    bases = base_images.references()
    return _named([project_images.describe(target, bases) for target in project_images.TARGETS])


def ensure() -> Images:
    """Build and push what is missing, and remove what is outdated. Returns the references."""
    given = from_environment()
    if given is not None:
        return given
    bases, described = _described(paths.REPOSITORY)
    if _build(described, bases, paths.REPOSITORY):
        with _building():
            image_cleanup.remove_outdated([bases.python, bases.vllm, *(image.reference for image in described)])
    return _named(described)


@contextmanager
def of_version(root: Path) -> Iterator[Images]:
    """The images of another version, whose files are in `root`, on the base images of this one; removed at the end.

    Only for the local node.
    """
    bases, described = _described(root)
    try:
        _build(described, bases, root)
        yield _named(described)
    finally:
        ours = current()
        with _building():
            image_cleanup.remove({image.reference for image in described} - {ours.operator, ours.runtime})


def _described(root: Path) -> tuple[BaseImages, list[ProjectImage]]:
    debian.require_root()
    registry.ensure_running()
    bases = base_images.references()
    return bases, [project_images.describe(target, bases, root) for target in project_images.TARGETS]


def _build(described: Sequence[ProjectImage], bases: BaseImages, root: Path) -> bool:
    """Whether there was anything to build or push."""
    if all(registry.has(image.reference) for image in described):
        return False
    debian.ensure(debian.IMAGE_PACKAGES)
    with _building():
        buildah.remove_abandoned_containers()
        base_images.ensure()
        for image in described:
            project_images.ensure(image, bases, root)
    return True


def _building() -> AbstractContextManager[None]:
    return locks.locked(paths.cache_root() / "images.lock", "building images")


def _named(described: Sequence[ProjectImage]) -> Images:
    return Images(**{image.target: image.reference for image in described})
