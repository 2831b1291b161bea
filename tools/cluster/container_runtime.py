"""containerd for the full node: own socket, state and content store, beside whatever the machine runs."""

from pathlib import Path

from tools.cluster import components, gobuild, network, oci_archive, paths, shell, versions
from tools.cluster.components import Component
from tools.cluster.paths import Layout

NAMESPACE = "k8s.io"
PAUSE_IMAGE = f"dsd-operator.local/pause:{gobuild.build_key(versions.PAUSE)}"
_CNI_PROGRAMS = "/usr/lib/cni"
_CRI = 'plugins."io.containerd.grpc.v1.cri"'

_CONFIGURATION = """\
version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [{disabled}]

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/opt"

[{cri}]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE (in a container, say) lower scores cannot be set, and runc fails.
  restrict_oom_score_adj = true
  # Whatever a crash leaves lies below our own directory.
  netns_mounts_under_state_dir = true

[{cri}.containerd]
  # An unpacked image is on disk once, not twice.
  discard_unpacked_layers = true

[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
  Root = "{runc}"

[{cri}.cni]
  bin_dir = "{cni_programs}"
  conf_dir = "{cni_configuration}"
"""


def socket(layout: Layout) -> Path:
    """containerd's socket; its path also marks the shims that are ours."""
    return layout.data / "containerd.sock"


def state(layout: Layout) -> Path:
    """containerd's volatile state: root file systems and network namespaces of running containers."""
    return layout.data / "containerd"


def cni_data(layout: Layout) -> Path:
    """Addresses given to pods."""
    return layout.data / "cni"


def render(layout: Layout, *, kubernetes: bool) -> str:
    """The configuration. Without ``kubernetes`` containers can be listed and removed but not run."""
    disabled = [f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")]
    disabled.append("io.containerd.tracing.processor.v1.otlp")
    if not kubernetes:
        disabled.append("io.containerd.grpc.v1.cri")
    return _CONFIGURATION.format(
        root=paths.containerd_root(),
        state=state(layout),
        socket=socket(layout),
        disabled=", ".join(f'"{name}"' for name in disabled),
        pause=PAUSE_IMAGE,
        runc=layout.data / "runc",
        cni_programs=_CNI_PROGRAMS,
        cni_configuration=layout.configuration / "cni",
        cri=_CRI,
    )


def component(layout: Layout, *, kubernetes: bool = True) -> Component:
    """containerd; writes its configuration and the pods' network configuration."""
    cni = layout.configuration / "cni"
    cni.mkdir(exist_ok=True)
    (cni / "10-dsd.conflist").write_text(network.cni_configuration(str(cni_data(layout))))
    configuration = layout.configuration / "containerd.toml"
    configuration.write_text(render(layout, kubernetes=kubernetes))
    return Component(
        "containerd", ["containerd", "--config", configuration], lambda: shell.succeeds(_ctr(layout, "version"))
    )


def _ctr(layout: Layout, *arguments: str | Path) -> list[str | Path]:
    return ["ctr", "--address", socket(layout), "--namespace", NAMESPACE, *arguments]


def images(layout: Layout) -> list[str]:
    """References of the images containerd has."""
    return shell.run(_ctr(layout, "images", "list", "-q")).split()


def remove_images(layout: Layout, references: list[str]) -> None:
    """Forget images; layers that no other image uses are removed in the background."""
    if references:
        shell.run(_ctr(layout, "images", "remove", *references))


def import_pause_image(layout: Layout) -> None:
    """Give containerd the image that holds a pod's namespaces."""
    if PAUSE_IMAGE not in images(layout):
        archive = layout.data / "pause.tar"
        oci_archive.write(archive, gobuild.binary(versions.PAUSE), PAUSE_IMAGE)
        shell.run(_ctr(layout, "images", "import", archive))


def forget_containers(layout: Layout) -> list[str]:
    """Remove the records of all containers, whose processes must have ended, and return their identifiers.

    A containerd without its Kubernetes part is started for this: the running one would keep them in memory.
    """
    components.daemon(layout, "containerd").stop()
    components.start(layout, component(layout, kubernetes=False))
    containers = shell.run(_ctr(layout, "containers", "list", "-q")).split()
    if containers:
        shell.run(_ctr(layout, "containers", "remove", *containers))
    components.daemon(layout, "containerd").stop()
    return containers
