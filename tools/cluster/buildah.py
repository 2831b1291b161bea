"""buildah with storage of its own in the cache, building without a container runtime (chroot isolation)."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.cluster import paths, shell
from tools.cluster.errors import ClusterError

_SECONDS = 3600
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
_CERTIFICATES_IN_IMAGE = "/etc/ssl/certs/ca-certificates.crt"
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")


def buildah(*arguments: str | Path, seconds: float = _SECONDS) -> str:
    """Run buildah and return what it prints on standard output."""
    root = paths.buildah_root()
    root.mkdir(parents=True, exist_ok=True)
    policy = root / "policy.json"
    if not policy.exists():
        policy.write_text(_POLICY)
    storage: list[str | Path] = ["--root", root / "storage", "--runroot", root / "run", "--storage-driver", "overlay"]
    return shell.run(["buildah", *storage, *arguments], env={"BUILDAH_ISOLATION": "chroot"}, timeout=seconds).strip()


def signature_policy() -> list[str | Path]:
    """The option that some commands need where the distribution brings no policy."""
    return ["--signature-policy", paths.buildah_root() / "policy.json"]


def certificates() -> Path | None:
    """The bundle of certificate authorities this machine was told to use, if any."""
    for name in _CERTIFICATE_VARIABLES:
        value = os.environ.get(name)
        if value and Path(value).is_file():
            return Path(value)
    return None


def certificate_mount() -> list[str]:
    """Options that lay the machine's bundle over the image's while something runs in it, without changing the image."""
    bundle = certificates()
    return ["--volume", f"{bundle}:{_CERTIFICATES_IN_IMAGE}:ro"] if bundle else []


def network_arguments() -> dict[str, str]:
    """Build arguments that let pip in a Dockerfile reach the index as this machine does."""
    values = {name: os.environ[name] for name in _INDEX_VARIABLES if name in os.environ}
    if certificates():
        values |= dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), _CERTIFICATES_IN_IMAGE)
    return values


@contextmanager
def working_container(base: str) -> Iterator[str]:
    """A container from ``base`` (an image, or ``scratch``) that is removed at the end."""
    container = buildah("from", "--pull=never", *signature_policy(), base)
    try:
        yield container
    finally:
        buildah("rm", container)


def mount(container: str) -> Path:
    """The container's file system on this machine, until it is removed."""
    return Path(buildah("mount", container))


def run_in(container: str, command: Sequence[str], volumes: Sequence[str] = (), env: Sequence[str] = ()) -> None:
    """Run a command in a container, with the machine's network and certificates."""
    options = [*certificate_mount(), "--network", "host", "--user", "0"]
    for volume in volumes:
        options += ["--volume", volume]
    for variable in env:
        options += ["--env", variable]
    buildah("run", *options, container, "--", *command)


def commit(container: str, reference: str) -> None:
    """Make an image of a container."""
    buildah("commit", "-q", *signature_policy(), container, reference)


def exists(reference: str) -> bool:
    """Whether the local storage has this image."""
    try:
        buildah("inspect", "--type", "image", reference)
    except ClusterError:
        return False
    return True


def pull(reference: str) -> None:
    """Fetch an image from the local registry into the local storage."""
    buildah("pull", "-q", "--tls-verify=false", *signature_policy(), reference)


def push(reference: str) -> None:
    """Push to the local registry. zstd at its fastest level: gzip would take most of the time."""
    compression = ["--compression-format", "zstd", "--compression-level", "1"]
    buildah("push", "-q", "--tls-verify=false", *compression, *signature_policy(), reference)


def remove_abandoned_containers() -> None:
    """Remove working containers of builds that were killed. Only for the holder of the image lock."""
    if buildah("containers", "-q"):
        buildah("rm", "--all")


def stored() -> list[str]:
    """References in the local storage, the newest first."""
    names = buildah("images", "--format", "{{.CreatedAtRaw}}|{{.Name}}:{{.Tag}}").splitlines()
    pairs = sorted((line.partition("|")[::2] for line in names), reverse=True)
    return [reference for _, reference in pairs if not reference.startswith("<none>")]


def forget(references: Sequence[str]) -> None:
    """Remove images from the local storage."""
    for reference in references:
        buildah("rmi", "--force", reference)


def prune_layers(limit: int) -> None:
    """Once there are more than ``limit`` unnamed images (cached build steps), remove those nothing is built on."""
    if len(buildah("images", "-q", "--filter", "dangling=true").split()) > limit:
        buildah("rmi", "--prune")
