"""Network policies that are enforced on the full node, by kube-network-policies (kubernetes-sigs), while a test runs.

The program decides on the first packet of each connection in user space; the kernel must hand those packets to it. It
asks for that with nftables' `queue`, which some kernels lack (CONFIG_NFT_QUEUE); then its own table is refused as a
whole. iptables' NFQUEUE does the same on every kernel, so a chain of ours hands them over, for pods' addresses only.

All of it is gone with :func:`running`'s end, and after a crash with the node: the chain's name is one of those that
:mod:`tools.cluster.host` removes.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.cluster import container_runtime, debian, full_node, gobuild, network, shell, versions
from tools.cluster.waiting import poll

CHAIN = "KUBE-NETWORK-POLICIES"
_NAME = versions.NETWORK_POLICIES.name
_NAMESPACE = "kube-system"
_QUEUE = "100"
_SECONDS = 60.0
_PACKAGES = (debian.Package("nftables", "nft"),)
_ACCEPTED = (
    # As the program's own rules do: the kubelet's probes and everything else that root does on the node.
    ("-m", "owner", "--uid-owner", "0"),
    ("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"),
)


@contextmanager
def running() -> Iterator[None]:
    """Enforce network policies on the full node until the end of the block. ClusterError if it does not start."""
    debian.ensure(_PACKAGES)
    gobuild.ensure([versions.NETWORK_POLICIES])
    image = container_runtime.import_program(full_node.layout(), versions.NETWORK_POLICIES, stop_signal="SIGINT")
    try:
        _kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests(image)}))
        _kubectl("rollout", "status", f"daemonset/{_NAME}", f"--timeout={_SECONDS:.0f}s")
        poll(_listens, _SECONDS)
        _hand_over()
        yield
    finally:
        remove()


def remove() -> None:
    """Stop enforcing, whatever is left of it."""
    _take_back()
    for kind in ("daemonset", "clusterrolebinding", "clusterrole", "serviceaccount"):
        _kubectl("delete", kind, _NAME, "--ignore-not-found", "--timeout=60s")
    shell.succeeds(["nft", "delete", "table", "inet", _NAME])  # a program that was killed leaves its own


def rules() -> list[list[str]]:
    """The chain's rules, as arguments of iptables: what they let pass, and whose packets wait for a decision."""
    # Where the program has gone, packets pass: a test that died must not cut off the pods of all others.
    queue = ["-j", "NFQUEUE", "--queue-num", _QUEUE, "--queue-bypass"]
    passed = [["-A", CHAIN, *match, "-j", "RETURN"] for match in _ACCEPTED]
    return [*passed, *(["-A", CHAIN, side, network.POD_RANGE, *queue] for side in ("-s", "-d"))]


def _hand_over() -> None:
    # After the Service's address has become a pod's, before the pod's own is hidden: as the program hooks in.
    _take_back()
    for rule in (["-N", CHAIN], *rules(), ["-A", "POSTROUTING", "-j", CHAIN]):
        _iptables(*rule)


def _take_back() -> None:
    for rule in (["-D", "POSTROUTING", "-j", CHAIN], ["-F", CHAIN], ["-X", CHAIN]):
        shell.succeeds(["iptables", "--wait", "5", "-t", "mangle", *rule])


def _iptables(*arguments: str) -> None:
    shell.run(["iptables", "--wait", "5", "-t", "mangle", *arguments])


def _listens() -> bool:
    """Whether a program waits at the queue: the first column of each line is a queue's number."""
    with open("/proc/net/netfilter/nfnetlink_queue") as queues:
        return any(line.split()[:1] == [_QUEUE] for line in queues)


def manifests(image: str) -> list[dict[str, Any]]:
    """The program as a DaemonSet in the node's network, with its rights."""
    labels = {"app": _NAME}
    rights = "rbac.authorization.k8s.io"
    reads = {"verbs": ["list", "watch"]}
    return [
        _object("v1", "ServiceAccount", _NAMESPACE),
        _object(
            f"{rights}/v1", "ClusterRole",
            rules=[
                {"apiGroups": [""], "resources": ["pods", "namespaces"], **reads},
                {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], **reads},
            ],
        ),
        _object(
            f"{rights}/v1", "ClusterRoleBinding",
            roleRef={"apiGroup": rights, "kind": "ClusterRole", "name": _NAME},
            subjects=[{"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}],
        ),
        _object(
            "apps/v1", "DaemonSet", _NAMESPACE,
            spec={
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": _pod(image)},
            },
        ),
    ]  # fmt: skip


def _object(api_version: str, kind: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": _NAME} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _pod(image: str) -> dict[str, Any]:
    arguments = ["--metrics-bind-address=127.0.0.1:0", "--fail-open", "--netfilter-bug-1766-fix=false"]
    context = {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}}
    container = {"name": "policies", "image": image, "args": arguments, "securityContext": context}
    return {
        "serviceAccountName": _NAME,
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 10,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{**container, "imagePullPolicy": "Never"}],
    }


def _kubectl(*arguments: str, given: str | None = None) -> str:
    kubectl, kubeconfig = gobuild.binary(versions.KUBECTL), full_node.layout().kubeconfig
    command: list[str | Path] = [kubectl, "--kubeconfig", kubeconfig, "--namespace", _NAMESPACE, *arguments]
    return shell.run(command, stdin=given, env={"NO_PROXY": "*", "no_proxy": "*"}, timeout=2 * _SECONDS)
