"""The rules of the restricted level of Pod Security for pods of Linux nodes, as a checker without a cluster.

Source: Kubernetes documentation, "Pod Security Standards", baseline and restricted, of Kubernetes 1.34. Tests hold
every rendered pod, and the operator's own, against it, and it against the real admission plug-in.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_POD_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC")
_SECCOMP: Final = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR: Final = frozenset({"RuntimeDefault", "Localhost"})
_SELINUX: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    }
)
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")

Spec = Mapping[str, Any]


def restricted_violations(pod_spec: Spec) -> list[str]:
    """What of `pod_spec` a namespace that enforces the restricted level would refuse; empty when admitted."""
    return [*_pod_violations(pod_spec), *_volume_violations(pod_spec), *_container_violations(pod_spec)]


def _pod_violations(pod_spec: Spec) -> Iterator[str]:
    yield from (f"{name} is set" for name in _HOST_FIELDS if pod_spec.get(name))
    context = pod_spec.get("securityContext", {})
    if context.get("runAsUser") == 0:
        yield "the pod runs as user 0"
    unsafe = sorted({sysctl["name"] for sysctl in context.get("sysctls", [])} - _SYSCTLS)
    if unsafe:
        yield f"the pod sets sysctls: {', '.join(unsafe)}"
    yield from (f"the pod {text}" for text in _confinement(context))


def _volume_violations(pod_spec: Spec) -> Iterator[str]:
    for volume in pod_spec.get("volumes", []):
        refused = volume.keys() - {"name"} - _POD_VOLUMES
        if refused:
            yield f"volume {volume['name']} is a {', '.join(sorted(refused))}"


def _container_violations(pod_spec: Spec) -> Iterator[str]:
    pod_context = pod_spec.get("securityContext", {})
    for container in [*pod_spec.get("initContainers", []), *pod_spec.get("containers", [])]:
        for violation in _one_container(container, pod_context):
            yield f"container {container['name']} {violation}"


def _one_container(container: Spec, pod_context: Spec) -> Iterator[str]:
    own = container.get("securityContext", {})
    context = {**pod_context, **own}
    capabilities = own.get("capabilities", {})
    rules = {
        "is privileged": own.get("privileged") is True,
        "may escalate privileges": own.get("allowPrivilegeEscalation") is not False,
        "does not drop all capabilities": "ALL" not in capabilities.get("drop", []),
        "adds capabilities": bool(set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}),
        "may run as root": context.get("runAsNonRoot") is not True or own.get("runAsUser") == 0,
        "has no seccomp profile": context.get("seccompProfile", {}).get("type") not in _SECCOMP,
        "unmasks /proc": own.get("procMount", "Default") != "Default",
        "takes host ports": any(port.get("hostPort") for port in container.get("ports", [])),
        "has a probe or a hook of another host": any(_hosts(container)),
    }
    yield from (text for text, broken in rules.items() if broken)
    yield from _confinement(own)


def _confinement(context: Spec) -> Iterator[str]:
    """AppArmor and SELinux, and processes of a Windows host, of a pod's or a container's context."""
    if context.get("appArmorProfile", {}).get("type", "RuntimeDefault") not in _APPARMOR:
        yield "is not confined by AppArmor"
    options = context.get("seLinuxOptions", {})
    if options.get("type", "") not in _SELINUX or options.get("user") or options.get("role"):
        yield "sets SELinux options"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "is a process of the host"


def _hosts(container: Spec) -> Iterator[Any]:
    """The `host` of every probe and hook: the kubelet would ask others for the pod. The loopback counts as another."""
    hooks = container.get("lifecycle", {}).values()
    for handler in (*(container.get(name, {}) for name in _PROBES), *hooks):
        for action in ("httpGet", "tcpSocket"):
            host = handler.get(action, {}).get("host") if isinstance(handler, Mapping) else None
            yield host not in (None, "")
