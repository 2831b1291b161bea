"""What the components are told: the arguments that differ between the modes, and those that were hard to find."""

import json
import tarfile
from pathlib import Path

import pytest

from tools.cluster import container_runtime, control_plane, dns, gobuild, network, node, oci_archive, ports
from tools.cluster.control_plane import ControlPlane
from tools.cluster.paths import Layout


def plane(directory: Path, node_name: str = "") -> ControlPlane:
    return ControlPlane(Layout(directory), "127.0.0.1", 1, 2, 3, "10.96.0.0/16", "10.96.0.1", node_name)


def test_api_only_server_has_neither_node_authorizer_nor_endpoints(tmp_path: Path) -> None:
    without, with_node = (control_plane.apiserver_command(plane(tmp_path, name)) for name in ("", "node"))
    assert "--authorization-mode=RBAC" in without
    assert "--endpoint-reconciler-type=none" in without
    assert "--authorization-mode=Node,RBAC" in with_node
    assert "--kubelet-preferred-address-types=InternalIP" in with_node


def test_controllers_are_not_throttled(tmp_path: Path) -> None:
    for command in (control_plane.controller_manager_command, control_plane.scheduler_command):
        assert {"--kube-api-qps=500", "--kube-api-burst=1000"} <= set(command(plane(tmp_path)))


def test_kubelet_sees_changes_at_once_and_keeps_to_its_place(tmp_path: Path) -> None:
    configuration = json.loads(node.kubelet_configuration(plane(tmp_path, "node")))
    assert configuration["configMapAndSecretChangeDetectionStrategy"] == "Watch"
    assert configuration["failCgroupV1"] is False
    assert configuration["cgroupRoot"] == "/dsd-operator"
    for name in ("podLogsDir", "volumePluginDir"):
        assert Path(configuration[name]).is_relative_to(tmp_path)


def test_containerd_keeps_to_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    configuration = tomllib.loads(container_runtime.render(Layout(tmp_path / "state"), kubernetes=True))
    cri = configuration["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["restrict_oom_score_adj"] is True
    assert cri["netns_mounts_under_state_dir"] is True
    assert Path(configuration["root"]).is_relative_to(tmp_path)
    assert Path(configuration["state"]).is_relative_to(tmp_path / "state")
    assert Path(cri["containerd"]["runtimes"]["runc"]["options"]["Root"]).is_relative_to(tmp_path / "state")


def test_containerd_without_kubernetes_has_its_part_disabled(tmp_path: Path) -> None:
    import tomllib

    configuration = tomllib.loads(container_runtime.render(Layout(tmp_path), kubernetes=False))
    assert "io.containerd.grpc.v1.cri" in configuration["disabled_plugins"]


def test_pod_network_plugins_in_order() -> None:
    plugins = json.loads(network.cni_configuration("/data"))["plugins"]
    assert [plugin["type"] for plugin in plugins] == ["ptp", "firewall", "portmap"]
    assert plugins[0]["ipam"]["dataDir"] == "/data"


@pytest.mark.parametrize(
    ("resolv_conf", "forwards"),
    [("nameserver 192.0.2.1\n", True), ("# nameserver 192.0.2.1\nsearch x\n", False), ("", False)],
)
def test_dns_forwards_only_where_the_machine_has_a_resolver(resolv_conf: str, forwards: bool) -> None:
    assert ("forward ." in dns.corefile(Path("/k"), resolv_conf)) is forwards


def test_free_ports_are_distinct_and_below_the_ephemeral_range() -> None:
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(20000 <= port < 30000 and ports.is_free(port) for port in found)


def test_image_archive_is_complete(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    oci_archive.write(tmp_path / "image.tar", program, "local/pause:1")
    with tarfile.open(tmp_path / "image.tar") as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        contents = {name: file.read() for name, file in files.items() if file}
    index = json.loads(contents["index.json"])
    manifest = json.loads(contents[_blob(index["manifests"][0])])
    config = json.loads(contents[_blob(manifest["config"])])
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "local/pause:1"
    assert config["config"]["Entrypoint"] == ["/pause"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert len(contents[_blob(manifest["layers"][0])]) == manifest["layers"][0]["size"]


def _blob(descriptor: dict[str, str]) -> str:
    return f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"


def test_pause_image_is_named_by_its_source() -> None:
    from tools.cluster import versions

    assert container_runtime.PAUSE_IMAGE.endswith(gobuild.build_key(versions.PAUSE))
