"""Runs the Prometheus adapter as a process beside a cluster, behind its API server.

The API server passes `custom.metrics.k8s.io` on to it (aggregation). In a cluster it finds the adapter by a Service;
here the Service is a name for this machine's loopback. What the adapter offers is that of docs/how-to/autoscaling.md.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster import ports, shell
from tools.cluster.api import kubectl, program
from tools.cluster.errors import ClusterError
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import PROMETHEUS_ADAPTER
from tools.cluster.waiting import poll
from tools.monitoring.server import end_with_parent

PAGE: Final = REPOSITORY / "docs" / "how-to" / "autoscaling.md"
_FENCE: Final = "```"

_GROUP: Final = "custom.metrics.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1beta2")
_NAME: Final = "prometheus-adapter"
_NAMESPACE: Final = "default"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20


def documented(begin: str = "rules:") -> dict[str, Any]:
    """The block of the page that begins with this line; by default the adapter's configuration."""
    text = PAGE.read_text(encoding="utf-8").partition(f"{_FENCE}yaml\n{begin}\n")[2].partition(_FENCE)[0]
    found: dict[str, Any] = yaml.safe_load(f"{begin}\n{text}")
    return found


@contextmanager
def running(kubeconfig: Path, prometheus: str, folder: Path, config: dict[str, Any]) -> Iterator[None]:
    """The adapter, asking the Prometheus at this URL; its API is served inside the block. ClusterError if it is not."""
    (port,) = ports.free_ports(1)
    folder.mkdir(parents=True)
    process = _start(kubeconfig, prometheus, port, folder, config)
    try:
        _kubectl(
            kubeconfig, "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": _api(port)})
        )
        if (
            not poll(lambda: process.poll() is not None or _served(kubeconfig), _START_SECONDS)
            or process.poll() is not None
        ):
            raise ClusterError(f"the Prometheus adapter does not serve:\n{_log(folder)}")
        yield
        if process.poll() is not None:
            raise ClusterError(f"the Prometheus adapter ended:\n{_log(folder)}")
    finally:
        # An API that nobody serves would break the deletion of every namespace.
        _kubectl(
            kubeconfig, "delete", "--ignore-not-found", *(f"apiservice/{version}.{_GROUP}" for version in _VERSIONS)
        )
        _kubectl(kubeconfig, "delete", "--ignore-not-found", "--namespace", _NAMESPACE, f"service/{_NAME}")
        process.terminate()
        process.wait(_STOP_SECONDS)


def _start(
    kubeconfig: Path, prometheus: str, port: int, folder: Path, config: dict[str, Any]
) -> "subprocess.Popen[bytes]":
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    logins = (f"--{use}-kubeconfig={kubeconfig}" for use in ("lister", "authentication", "authorization"))
    command: list[str | Path] = [
        program(PROMETHEUS_ADAPTER.name),
        *logins,
        f"--prometheus-url={prometheus}",
        f"--config={folder / 'config.yaml'}",
        "--metrics-relist-interval=1s",
        "--metrics-max-age=30s",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
    ]
    with (folder / "adapter.log").open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=end_with_parent)


def _api(port: int) -> list[dict[str, Any]]:
    """The name of this machine's loopback, and the API versions that are served there."""
    service = {"type": "ExternalName", "externalName": "localhost"}
    meta = {"name": _NAME, "namespace": _NAMESPACE}
    backend = {**meta, "port": port}
    made: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}]
    for version in _VERSIONS:
        spec = {"group": _GROUP, "version": version, "service": backend, "insecureSkipTLSVerify": True}
        priority = {"groupPriorityMinimum": 100, "versionPriority": 100}
        made.append(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{version}.{_GROUP}"},
                "spec": {**spec, **priority},
            }
        )
    return made


def _served(kubeconfig: Path) -> bool:
    command: list[str | Path] = [
        kubectl(),
        "--kubeconfig",
        kubeconfig,
        "get",
        "--raw",
        f"/apis/{_GROUP}/{_VERSIONS[-1]}",
    ]
    return shell.succeeds(command)


def _kubectl(kubeconfig: Path, *arguments: str, given: str | None = None) -> None:
    shell.run([kubectl(), "--kubeconfig", kubeconfig, *arguments], stdin=given)


def _log(folder: Path) -> str:
    return shell.tail((folder / "adapter.log").read_text(errors="replace"))
