"""etcd, API server, controller manager and scheduler: their credentials and arguments.

The API-only mode and the full node differ only in :class:`ControlPlane`'s fields.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import gobuild, kubeapi, kubeconfig, loopback, versions
from tools.cluster.certificates import Authority
from tools.cluster.components import Component
from tools.cluster.paths import Layout

TOKEN_KEY = "service-account"
ISSUER = "https://kubernetes.default.svc.cluster.local"
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
_FRONT_PROXY = "front-proxy-client"  # how the API server introduces itself to aggregated API servers
# The default client-side limits (20 requests per second) would be what a test of many objects measures.
_CLIENT_LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")


@dataclass(frozen=True)
class ControlPlane:
    """Addresses and ports of one control plane. ``node_name`` is empty without a node.

    ``token_keys`` are the key pairs of service-account tokens: the first signs, all are believed and published.
    With ``audit`` the API server writes who asked for what, and whether it was allowed, to :attr:`audit_log`.
    ``without`` are the controllers that do not run.
    """

    layout: Layout
    address: str
    port: int
    etcd_client_port: int
    etcd_peer_port: int
    service_range: str
    service_address: str
    node_name: str = ""
    admission_plugins: tuple[str, ...] = ()
    token_keys: tuple[str, ...] = (TOKEN_KEY,)
    audit: bool = False
    without: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.address}:{self.port}"

    @property
    def authority(self) -> Authority:
        """The cluster's certificate authority."""
        return Authority(self.layout.certificates)

    @property
    def audit_log(self) -> Path:
        """One JSON object for each request, written before its answer goes out."""
        return self.layout.logs / "audit.jsonl"

    @property
    def client(self) -> kubeapi.ApiClient:
        """A client with the administrator's rights."""
        return kubeapi.ApiClient(self.server, self.authority)


def make_credentials(plane: ControlPlane) -> None:
    """Certificates, the key of service-account tokens, and the kubeconfigs of administrator and controllers."""
    authority = plane.authority
    authority.create()
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    addresses = [f"DNS:{name}" for name in (*names, "localhost")]
    addresses += [f"IP:{address}" for address in dict.fromkeys((plane.address, plane.service_address, "127.0.0.1"))]
    authority.issue("apiserver", "kube-apiserver", addresses=addresses)
    authority.issue("admin", "admin", group="system:masters")
    authority.issue("controller-manager", "system:kube-controller-manager")
    authority.issue(_FRONT_PROXY, _FRONT_PROXY)
    authority.create_key_pair(TOKEN_KEY)
    kubeconfig.write(plane.layout.kubeconfig, plane.server, authority, "admin")
    write_kubeconfig(plane, "controller-manager")


def make_scheduler_credentials(plane: ControlPlane) -> None:
    """The scheduler's certificate and kubeconfig."""
    plane.authority.issue("scheduler", "system:kube-scheduler")
    write_kubeconfig(plane, "scheduler")


def write_kubeconfig(plane: ControlPlane, user: str) -> Path:
    """The kubeconfig of a component whose certificate has been issued under this name."""
    path = plane.layout.kubeconfig_of(user)
    kubeconfig.write(path, plane.server, plane.authority, user)
    return path


def etcd_command(plane: ControlPlane) -> list[str | Path]:
    """A single etcd on loopback. It does not sync to disk: the state is made anew by the next ``up`` anyway."""
    client = f"http://127.0.0.1:{plane.etcd_client_port}"
    peer = f"http://127.0.0.1:{plane.etcd_peer_port}"
    return [
        gobuild.binary(versions.ETCD),
        "--name=dsd",
        f"--data-dir={plane.layout.data / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=dsd={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_command(plane: ControlPlane) -> list[str | Path]:
    """The API server, with RBAC and, where there is a node, the node authorizer and the kubelet's credentials."""
    authority = plane.authority
    command: list[str | Path] = [
        gobuild.binary(versions.APISERVER),
        f"--etcd-servers=http://127.0.0.1:{plane.etcd_client_port}",
        f"--bind-address={plane.address}",
        f"--advertise-address={plane.address}",
        f"--secure-port={plane.port}",
        f"--tls-cert-file={authority.certificate('apiserver')}",
        f"--tls-private-key-file={authority.key('apiserver')}",
        f"--client-ca-file={authority.certificate('ca')}",
        f"--service-cluster-ip-range={plane.service_range}",
        f"--service-account-issuer={ISSUER}",
        *(f"--service-account-key-file={authority.public_key(name)}" for name in plane.token_keys),
        f"--service-account-signing-key-file={authority.key(plane.token_keys[0])}",
        f"--cert-dir={plane.layout.data / 'apiserver'}",
        "--shutdown-delay-duration=0s",
        "--allow-privileged=true",
        *_aggregation_options(authority),
    ]
    plugins = [*(["NodeRestriction"] if plane.node_name else []), *plane.admission_plugins]
    if plugins:
        command.append(f"--enable-admission-plugins={','.join(plugins)}")
    if plane.audit:
        command += audit_options(plane)
    if not plane.node_name:
        # A loopback address is no legal endpoint of the `kubernetes` Service.
        return [*command, "--authorization-mode=RBAC", "--endpoint-reconciler-type=none"]
    return [
        *command,
        "--authorization-mode=Node,RBAC",
        # The node's name is not in any DNS.
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-certificate-authority={authority.certificate('ca')}",
        f"--kubelet-client-certificate={authority.certificate('admin')}",
        f"--kubelet-client-key={authority.key('admin')}",
    ]


def _aggregation_options(authority: Authority) -> list[str | Path]:
    """Let other API servers (a metrics adapter, say) stand behind this one, and know whom it asks for."""
    return [
        f"--requestheader-client-ca-file={authority.certificate('ca')}",
        f"--requestheader-allowed-names={_FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={authority.certificate(_FRONT_PROXY)}",
        f"--proxy-client-key-file={authority.key(_FRONT_PROXY)}",
    ]


def audit_options(plane: ControlPlane) -> list[str | Path]:
    """Write the audit policy; returns the API server's options for it."""
    policy = plane.layout.data / "audit-policy.json"
    policy.write_text(json.dumps(_AUDIT_POLICY))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={plane.audit_log}",
        "--audit-log-mode=blocking",
    ]


def controller_manager_command(plane: ControlPlane) -> list[str | Path]:
    """All controllers but those that are not wanted, without leader election and without a port."""
    authority = plane.authority
    return [
        gobuild.binary(versions.CONTROLLER_MANAGER),
        f"--controllers={','.join(('*', *(f'-{name}' for name in plane.without)))}",
        f"--kubeconfig={plane.layout.kubeconfig_of('controller-manager')}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=true",
        f"--root-ca-file={authority.certificate('ca')}",
        f"--service-account-private-key-file={authority.key(TOKEN_KEY)}",
        "--horizontal-pod-autoscaler-sync-period=2s",  # a test waits for the second look; 15 s is the default
        *_CLIENT_LIMITS,
    ]


def scheduler_command(plane: ControlPlane) -> list[str | Path]:
    """The scheduler, without leader election and without a port."""
    kubeconfig_file = plane.layout.kubeconfig_of("scheduler")
    return [
        gobuild.binary(versions.SCHEDULER),
        f"--kubeconfig={kubeconfig_file}",
        "--leader-elect=false",
        "--secure-port=0",
        *_CLIENT_LIMITS,
    ]


def etcd(plane: ControlPlane) -> Component:
    """The storage."""
    health = f"http://127.0.0.1:{plane.etcd_client_port}/health"
    return Component("etcd", etcd_command(plane), lambda: loopback.answers(health))


def apiserver(plane: ControlPlane) -> Component:
    """The API server; it waits for etcd by itself, so both can start together."""
    return Component("kube-apiserver", apiserver_command(plane), plane.client.ready)


def controller_manager(plane: ControlPlane) -> Component:
    """The controllers; ready once they have made the default service account."""
    ready = plane.client.has_default_service_account
    return Component("kube-controller-manager", controller_manager_command(plane), ready)


def scheduler(plane: ControlPlane) -> Component:
    """The scheduler. It has no endpoint to ask; that pods get a node shows that it works."""
    return Component("kube-scheduler", scheduler_command(plane), lambda: True)
