"""Runs the LeaderWorkerSet controller as a process beside a cluster, webhooks included.

Without its webhooks it makes nothing that works: they give each pod its index, its group and the address of its leader.
In a cluster the API server reaches them through a Service, and the controller makes their certificate; here they are an
address on loopback, and the certificate comes from an authority of our own. The program, the CRD and the webhooks'
rules are those of its Go module.
"""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster import ports, shell
from tools.cluster.api import kubectl, program
from tools.cluster.certificates import Authority
from tools.cluster.errors import ClusterError
from tools.cluster.versions import LEADER_WORKER_SET as TOOL
from tools.monitoring.server import end_with_parent
from tools.testbed.module_crds import LEADER_WORKER_SET, module_folder
from tools.testbed.waiting import wait_for

_NAME: Final = "leader-worker-set"
_STOP_SECONDS: Final = 20
_START_SECONDS: Final = 60.0


@contextmanager
def running(kubeconfig: Path, folder: Path) -> Iterator[None]:
    """The controller, with its CRD installed; `folder` takes certificates and log. ClusterError if it ends by itself.

    Its webhooks go with it: they fail closed, and nobody would answer. The CRD stays.
    """
    LEADER_WORKER_SET.install(kubeconfig)
    webhook, health = ports.free_ports(2)
    certificate = _certificate(folder / "certificates")
    process = _start(kubeconfig, folder, webhook, health)
    try:
        _apply(kubeconfig, _webhooks(webhook, certificate))
        _wait_for_webhooks(kubeconfig, folder, process)
        yield
        _check(process, folder)
    finally:
        _delete_webhooks(kubeconfig)
        process.terminate()
        process.wait(_STOP_SECONDS)


def _certificate(folder: Path) -> bytes:
    """Make the serving certificate where the controller looks for it; returns the authority's."""
    folder.mkdir(parents=True)
    authority = Authority(folder)
    authority.create()
    authority.issue("tls", "leader-worker-set", addresses=["IP:127.0.0.1"])
    return authority.certificate("ca").read_bytes()


def _start(kubeconfig: Path, folder: Path, webhook: int, health: int) -> "subprocess.Popen[bytes]":
    settings = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(folder / "certificates")},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "leaderElection": {"leaderElect": False},
    }
    (folder / "configuration.yaml").write_text(yaml.safe_dump(settings))
    command: list[str | Path] = [program(TOOL.name), f"--config={folder / 'configuration.yaml'}"]
    command.append(f"--kubeconfig={kubeconfig}")
    with (folder / "controller.log").open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env=_ENVIRONMENT, preexec_fn=end_with_parent)


_ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_SERVICE")}


def _webhooks(port: int, authority: bytes) -> list[dict[str, Any]]:
    """The module's webhook configurations, the rules for pods narrowed as its own installation does it."""
    folder = module_folder(TOOL.module, LEADER_WORKER_SET.module) / "config" / "webhook"
    made = []
    for manifest in yaml.safe_load_all((folder / "manifests.yaml").read_text()):
        kind = manifest["kind"].removesuffix("WebhookConfiguration").lower()
        for change in yaml.safe_load((folder / f"{kind}-patch.yaml").read_text()):
            manifest["webhooks"][int(change["path"].rpartition("/")[2])] = change["value"]
        for hook in manifest["webhooks"]:
            address = f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"
            hook["clientConfig"] = {"url": address, "caBundle": base64.b64encode(authority).decode()}
        made.append({**manifest, "metadata": {"name": _NAME}})
    return made


def _wait_for_webhooks(kubeconfig: Path, folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Until they answer: a LeaderWorkerSet that is only tried then passes."""
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"startupPolicy": "LeaderCreated", "rolloutStrategy": {"type": "RollingUpdate"}}
    probe = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {**spec, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }

    def answer() -> str:
        _check(process, folder)
        return _kubectl(kubeconfig, "create", "--dry-run=server", "-f", "-", given=json.dumps(probe)).stderr

    wait_for("the webhooks of the LeaderWorkerSet controller", answer, lambda text: text == "", _START_SECONDS, 0.2)


def _check(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    if process.poll() is not None:
        log = (folder / "controller.log").read_text(errors="replace")
        raise ClusterError(f"the LeaderWorkerSet controller ended:\n{shell.tail(log)}")


def _apply(kubeconfig: Path, manifests: list[dict[str, Any]]) -> None:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    done = _kubectl(kubeconfig, "apply", "-f", "-", given=given)
    if done.returncode:
        raise ClusterError(f"the webhooks of the LeaderWorkerSet controller: {done.stderr.strip()}")


def _delete_webhooks(kubeconfig: Path) -> None:
    kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration"
    _kubectl(kubeconfig, "delete", kinds, _NAME, "--ignore-not-found")


def _kubectl(kubeconfig: Path, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    command = [str(kubectl()), "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)
