"""The local image registry: on loopback only, its blobs in the cache."""

from tools.cluster import components, gobuild, locks, kubeapi, paths, versions
from tools.cluster.components import Component
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
    command = [gobuild.binary(versions.REGISTRY), "serve", configuration]
    # Without this the program tries to send traces to a collector that is not there.
    environment = {"OTEL_TRACES_EXPORTER": "none"}
    return Component("registry", command, answers, environment)


def answers() -> bool:
    """Whether the registry answers."""
    return kubeapi.answers(f"http://127.0.0.1:{PORT}/v2/")


def has(reference: str) -> bool:
    """Whether the registry holds this image (``HOST/repository:tag``)."""
    repository, _, tag = reference.removeprefix(f"{HOST}/").rpartition(":")
    return kubeapi.answers(f"http://127.0.0.1:{PORT}/v2/{repository}/manifests/{tag}", accept=_MANIFEST_TYPES)


def ensure_running() -> None:
    """Start the registry if it does not run."""
    gobuild.ensure([versions.REGISTRY])
    with locks.locked(layout().root / "lock", "starting the registry"):
        layout().make()
        components.start(layout(), _component())


def stop() -> None:
    """Stop the registry; its images stay."""
    components.daemon(layout(), "registry").stop()
