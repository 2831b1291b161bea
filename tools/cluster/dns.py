"""CoreDNS for the full node, as a process on the node's address: no image, no pod, there before the first pod."""

import json
from pathlib import Path

from tools.cluster import control_plane, gobuild, loopback, network, shell, versions
from tools.cluster.components import Component
from tools.cluster.control_plane import ControlPlane

_READY_PORT = 8181
_RESOLV_CONF = Path("/etc/resolv.conf")
_COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready {address}:{ready_port}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
        fallthrough in-addr.arpa ip6.arpa
    }}
{forward}    cache 5
}}
"""
_RULES = (
    {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
)
_USER = "dsd:coredns"


def corefile(kubeconfig: Path, resolv_conf: str) -> str:
    """The configuration. Other names go to the machine's resolvers, where it has any."""
    upstream = any(line.split()[:1] == ["nameserver"] for line in resolv_conf.splitlines())
    forward = f"    forward . {_RESOLV_CONF}\n" if upstream else ""
    return _COREFILE.format(
        address=network.NODE_ADDRESS, ready_port=_READY_PORT, kubeconfig=kubeconfig, forward=forward
    )


def rights() -> list[dict[str, object]]:
    """What CoreDNS may read."""
    group = "rbac.authorization.k8s.io"
    role: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _USER},
        "rules": list(_RULES),
    }
    binding: dict[str, object] = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
    }
    return [role, binding]


def make_credentials(plane: ControlPlane) -> None:
    """Its certificate and kubeconfig."""
    plane.authority.issue("coredns", _USER)
    control_plane.write_kubeconfig(plane, "coredns")


def grant_rights(plane: ControlPlane) -> None:
    """Create its rights on the running API server."""
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": rights()})
    kubectl = gobuild.binary(versions.KUBECTL)
    shell.run(
        [kubectl, "--kubeconfig", plane.layout.kubeconfig, "apply", "-f", "-"],
        stdin=manifest,
        env={"NO_PROXY": "*", "no_proxy": "*"},
    )


def component(plane: ControlPlane) -> Component:
    """CoreDNS; ready once it has read the cluster's Services."""
    configuration = plane.layout.configuration / "Corefile"
    resolv_conf = _RESOLV_CONF.read_text() if _RESOLV_CONF.exists() else ""
    configuration.write_text(corefile(plane.layout.kubeconfig_of("coredns"), resolv_conf))
    command: list[str | Path] = [gobuild.binary(versions.COREDNS), "-conf", configuration]
    url = f"http://{network.NODE_ADDRESS}:{_READY_PORT}/ready"
    return Component("coredns", command, lambda: loopback.answers(url))
