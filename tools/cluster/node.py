"""kubelet and kube-proxy of the full node."""

import json
from pathlib import Path

from tools.cluster import cgroups, container_runtime, control_plane, gobuild, loopback, network, versions
from tools.cluster.components import Component
from tools.cluster.control_plane import ControlPlane

NODE_NAME = "dsd-node"
_ADDRESS = network.NODE_ADDRESS


def make_credentials(plane: ControlPlane) -> None:
    """Certificates and kubeconfigs of kubelet and kube-proxy."""
    authority = plane.authority
    authority.issue("kubelet", f"system:node:{NODE_NAME}", group="system:nodes", addresses=[f"IP:{_ADDRESS}"])
    authority.issue("kube-proxy", "system:kube-proxy")
    for user in ("kubelet", "kube-proxy"):
        control_plane.write_kubeconfig(plane, user)


def kubelet_configuration(plane: ControlPlane) -> str:
    """The kubelet's configuration: quick to see changes, never throttled, never evicting for a full disk."""
    authority = plane.authority
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": _ADDRESS,
            "healthzBindAddress": _ADDRESS,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority.certificate("ca"))},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(authority.certificate("kubelet")),
            "tlsPrivateKeyFile": str(authority.key("kubelet")),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroups.NAME}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [_ADDRESS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{container_runtime.socket(plane.layout)}",
            "podLogsDir": str(plane.layout.data / "pod-logs"),
            "volumePluginDir": str(plane.layout.data / "volume-plugins"),
            # Changed ConfigMaps reach the pods' files at once instead of after a minute.
            "configMapAndSecretChangeDetectionStrategy": "Watch",
            "syncFrequency": "10s",
            "registryPullQPS": 0,
            "serializeImagePulls": False,
            "kubeAPIQPS": 500,
            "kubeAPIBurst": 1000,
            "eventRecordQPS": 0,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        },
        indent=1,
    )


def kubelet(plane: ControlPlane) -> Component:
    """The kubelet; ready once its node is."""
    layout = plane.layout
    configuration = layout.configuration / "kubelet.yaml"
    configuration.write_text(kubelet_configuration(plane))
    command: list[str | Path] = [
        gobuild.binary(versions.KUBELET),
        f"--config={configuration}",
        f"--kubeconfig={layout.kubeconfig_of('kubelet')}",
        f"--root-dir={layout.data / 'kubelet'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={_ADDRESS}",
    ]
    # The node's condition alone may be from before a crash.
    health = f"http://{_ADDRESS}:10248/healthz"
    return Component("kubelet", command, lambda: loopback.answers(health) and plane.client.node_ready(NODE_NAME))


def kube_proxy(plane: ControlPlane) -> Component:
    """kube-proxy, with node ports on the node's own address only and the machine's connection tracking untouched."""
    command: list[str | Path] = [
        gobuild.binary(versions.PROXY),
        f"--kubeconfig={plane.layout.kubeconfig_of('kube-proxy')}",
        f"--hostname-override={NODE_NAME}",
        "--proxy-mode=iptables",
        "--iptables-min-sync-period=100ms",
        f"--nodeport-addresses={_ADDRESS}/32",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
        f"--healthz-bind-address={_ADDRESS}:10256",
        f"--metrics-bind-address={_ADDRESS}:10249",
    ]
    return Component("kube-proxy", command, lambda: loopback.answers(f"http://{_ADDRESS}:10256/livez"))
