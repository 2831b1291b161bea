"""Remove outdated images: an image with vLLM takes gigabytes, in buildah's storage, the registry and containerd."""

from collections.abc import Collection, Iterable, Sequence

from tools.cluster import buildah, container_runtime, full_node, project_images, registry
from tools.cluster.console import step

# Other checkouts may use them, and going back to an earlier commit should be quick. They share all large layers.
_KEPT_PER_PROJECT_IMAGE = 8
_KEPT_BUILD_STEPS = 80


def outdated(references: Iterable[str], current: Sequence[str], kept: int = _KEPT_PER_PROJECT_IMAGE) -> list[str]:
    """Which of the images (newest first) go: other base images, and all but the ``kept`` newest of the project's."""
    seen: dict[str, int] = {}
    gone = []
    for reference in references:
        repository = reference.rpartition(":")[0]
        if not is_ours(reference) or reference in current:
            continue
        seen[repository] = seen.get(repository, 0) + 1
        if seen[repository] > kept or repository not in map(project_images.repository_of, project_images.TARGETS):
            gone.append(reference)
    return gone


def remove_outdated(current: Sequence[str]) -> None:
    """Remove them everywhere; nothing is said if there are none."""
    gone = outdated(buildah.stored(), current)
    if gone:
        with step(f"removing {len(gone)} outdated images"):
            buildah.forget(gone)
            registry.remove(gone)
    if full_node.recorded_plane() is not None:
        _remove_unknown({*buildah.stored(), *current})
    buildah.prune_layers(_KEPT_BUILD_STEPS)


def remove(references: Collection[str]) -> None:
    """Remove these images everywhere, whichever of the places have them."""
    gone = sorted(references)
    if not gone:
        return
    with step(f"removing {len(gone)} images"):
        buildah.forget([reference for reference in buildah.stored() if reference in gone])
        registry.remove(gone)
        if full_node.recorded_plane() is not None:
            container_runtime.remove_images(full_node.layout(), gone)


def _remove_unknown(known: Collection[str]) -> None:
    """Remove from containerd what went elsewhere, also while no node ran: its content outlives the node."""
    layout = full_node.layout()
    unknown = sorted(name for name in container_runtime.images(layout) if is_ours(name) and name not in known)
    if unknown:
        with step(f"removing {len(unknown)} outdated images from containerd"):
            container_runtime.remove_images(layout, unknown)


def is_ours(name: str) -> bool:
    """Whether this is a tag of the local registry; names by digest go with their tags."""
    return name.startswith(f"{registry.HOST}/") and "@" not in name
