"""The local image registry: on loopback only, its blobs in the cache."""

from collections.abc import Sequence
from pathlib import Path

from tools.cluster import components, gobuild, locks, loopback, paths, ports, shell, versions
from tools.cluster.components import Component
from tools.cluster.errors import ClusterError
from tools.cluster.paths import Layout

# Part of every image's name, hence fixed: containerd and the kubelet know images by it.
PORT = 5917
HOST = f"localhost:{PORT}"

_MANIFEST_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
_CONFIGURATION = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
  delete: {{enabled: true}}
http:
  addr: 127.0.0.1:{port}
"""


def layout() -> Layout:
    """Its own directory: images are built without a node, and a new node does not disturb that."""
    return Layout(paths.cache_root() / "registry")


def _component() -> Component:
    configuration = layout().configuration / "registry.yaml"
    configuration.write_text(_CONFIGURATION.format(root=layout().data, port=PORT))
    command: list[str | Path] = [gobuild.binary(versions.REGISTRY), "serve", configuration]
    # Without this the program tries to send traces to a collector that is not there.
    environment = {"OTEL_TRACES_EXPORTER": "none"}
    return Component("registry", command, answers, environment)


def answers() -> bool:
    """Whether the registry answers."""
    return loopback.answers(f"http://127.0.0.1:{PORT}/v2/")


def _split(reference: str) -> tuple[str, str]:
    repository, _, tag = reference.removeprefix(f"{HOST}/").rpartition(":")
    return repository, tag


def _manifest_url(repository: str, tag: str) -> str:
    return f"http://127.0.0.1:{PORT}/v2/{repository}/manifests/{tag}"


def has(reference: str) -> bool:
    """Whether the registry holds this image (``HOST/repository:tag``)."""
    return loopback.answers(_manifest_url(*_split(reference)), accept=_MANIFEST_TYPES)


def ensure_running() -> None:
    """Start the registry if it does not run."""
    gobuild.ensure([versions.REGISTRY])
    with locks.locked(layout().root / "lock", "starting the registry"):
        layout().make()
        if not components.daemon(layout(), "registry").running() and not ports.is_free(PORT):
            raise ClusterError(f"port {PORT} on 127.0.0.1 is used by another program; the local registry needs it")
        components.start(layout(), _component())


def remove(references: Sequence[str]) -> None:
    """Delete images, and the blobs that no other image uses; the registry is away for a second meanwhile."""
    for reference in references:
        repository, tag = _split(reference)
        headers = loopback.request(_manifest_url(repository, tag), accept=_MANIFEST_TYPES)
        if headers is not None:
            loopback.request(_manifest_url(repository, headers["Docker-Content-Digest"]), method="DELETE")
    stop()
    shell.run([gobuild.binary(versions.REGISTRY), "garbage-collect", layout().configuration / "registry.yaml"])
    ensure_running()


def stop() -> None:
    """Stop the registry; its images stay."""
    components.daemon(layout(), "registry").stop()
