"""The project's own images, built by buildah from the repository's Dockerfile, named by the content of their inputs."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import buildah, dockerfile, image_origin, keys, paths, registry, shell
from tools.cluster.base_images import BaseImages
from tools.cluster.console import step
from tools.cluster.errors import ClusterError

_DOCKERFILE = "Dockerfile"
TARGETS = ("operator", "runtime")


def repository_of(target: str) -> str:
    """The image's name without its tag."""
    return f"{registry.HOST}/dsd-{target}"


@dataclass(frozen=True)
class ProjectImage:
    """One target: its reference, and the files of the repository it is made of."""

    target: str
    reference: str
    files: tuple[Path, ...]


def describe(target: str, bases: BaseImages, root: Path = paths.REPOSITORY) -> ProjectImage:
    """What the image of a target is called and made of, for the tree as it is now."""
    text = (root / _DOCKERFILE).read_text()
    inputs = dockerfile.inputs(text, target)
    files = tuple(tracked_files(root, inputs.paths))
    key = keys.of_texts([inputs.text, *_base_arguments(bases, inputs.text), keys.of_files(root, files)])
    return ProjectImage(target, f"{repository_of(target)}:{key}", files)


def _base_arguments(bases: BaseImages, text: str) -> list[str]:
    """Base images as build arguments, only those the target uses: the operator does not depend on vLLM's."""
    values = {"PYTHON_IMAGE": bases.python, "VLLM_IMAGE": bases.vllm}
    return [f"{name}={value}" for name, value in values.items() if f"FROM ${{{name}}}" in text]


def tracked_files(root: Path, wanted: Iterable[str]) -> list[Path]:
    """The files below these paths that git knows or would add: no caches, no build products. Raises ClusterError."""
    missing = [path for path in sorted(wanted) if not (root / path).exists()]
    if missing:
        raise ClusterError(f"what is wanted does not exist: {', '.join(missing)}")
    if not (root / ".git").exists():
        found = [file for path in wanted for file in [root / path, *(root / path).rglob("*")]]
        return sorted({file for file in found if file.is_file() and "__pycache__" not in file.parts})
    # git would refuse a checkout of another user, as root has it in many a CI.
    git = ["git", "-c", f"safe.directory={root.resolve()}"]
    listed = shell.run([*git, "ls-files", "-z", "-co", "--exclude-standard", "--", *sorted(wanted)], cwd=root)
    return sorted({root / name for name in listed.split("\0") if name and (root / name).is_file()})


def ensure(image: ProjectImage, bases: BaseImages, root: Path = paths.REPOSITORY) -> None:
    """Build and push, unless the registry has it."""
    if registry.has(image.reference):
        return
    if not buildah.exists(image.reference):
        with step(f"building {image.reference}"):
            _build(image, bases, root)
    with step(f"pushing {image.reference}"):
        buildah.push(image.reference)


def _build(image: ProjectImage, bases: BaseImages, root: Path) -> None:
    """The context is a copy of exactly the files that are in the key: nothing else can get into the image."""
    arguments = {"PYTHON_IMAGE": bases.python, "VLLM_IMAGE": bases.vllm, **buildah.network_arguments()}
    arguments |= image_origin.build_arguments(root, [root / _DOCKERFILE, *image.files])
    options: list[str | Path] = ["--layers", "--pull=never", "--network", "host", *buildah.certificate_mount()]
    for name, value in arguments.items():
        options += ["--build-arg", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="dsd-build-") as directory:
        context = Path(directory)
        for file in image.files:
            destination = context / file.relative_to(root)
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, destination)
            os.chmod(destination, 0o755 if file.stat().st_mode & 0o100 else 0o644)  # whatever the user's umask
        options += [*buildah.signature_policy(), "--target", image.target, "--tag", image.reference]
        buildah.buildah("build", *options, "--file", root / _DOCKERFILE, context)
