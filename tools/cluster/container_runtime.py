"""containerd for the full node: own socket, state and content store, beside whatever the machine runs."""

from collections.abc import Collection, Mapping
from pathlib import Path

from tools.cluster import components, gobuild, network, oci_archive, paths, shell, versions
from tools.cluster.components import Component
from tools.cluster.paths import Layout
from tools.cluster.versions import Tool

NAMESPACE = "k8s.io"


def _reference(tool: Tool) -> str:
    return f"dsd-operator.local/{tool.name}:{gobuild.build_key(tool)}"


PAUSE_IMAGE = _reference(versions.PAUSE)
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


def images(layout: Layout) -> dict[str, str]:
    """The images containerd has: each name, of which an image has several, and the digest it stands for."""
    lines = shell.run(_ctr(layout, "images", "list")).splitlines()[1:]
    return {name: digest for name, _, digest in (line.split()[:3] for line in lines)}


def without_tag(images: Mapping[str, str], gone: Collection[str]) -> list[str]:
    """Names that go when the tags ``gone`` do: theirs, and those by digest that containerd keeps beside a tag."""
    tags = [name for name in images if "@" not in name and not name.startswith("sha256:")]
    kept = {images[name] for name in tags if name not in gone}
    return [name for name, digest in images.items() if digest not in kept or name in gone]


def remove_images(layout: Layout, gone: Collection[str]) -> None:
    """Forget images by their tags; layers that no other image uses are removed in the background."""
    names = without_tag(images(layout), gone)
    if names:
        shell.run(_ctr(layout, "images", "remove", *names))


def import_program(layout: Layout, tool: Tool, stop_signal: str = "SIGTERM") -> str:
    """Give containerd an image of one built program, and return what it is called."""
    reference = _reference(tool)
    if reference not in images(layout):
        archive = layout.data / f"{tool.name}.tar"
        oci_archive.write(archive, gobuild.binary(tool), reference, stop_signal=stop_signal)
        shell.run(_ctr(layout, "images", "import", archive))
        archive.unlink()
    return reference


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
