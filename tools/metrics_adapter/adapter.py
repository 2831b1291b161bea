"""Runs the Prometheus adapter as a process beside a cluster, behind its API server.

What the adapter offers is that of docs/how-to/autoscaling.md.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster import ports, shell
from tools.cluster.api import program
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import PROMETHEUS_ADAPTER
from tools.monitoring.server import end_with_parent
from tools.testbed.aggregated import AggregatedApi

PAGE: Final = REPOSITORY / "docs" / "how-to" / "autoscaling.md"
_FENCE: Final = "```"

_API: Final = AggregatedApi("prometheus-adapter", "custom.metrics.k8s.io", ["v1beta1", "v1beta2"])
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
        with _API.served(kubeconfig, port, lambda: _ended(process, folder)):
            yield
    finally:
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


def _ended(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    """The last lines of its log if it has ended."""
    if process.poll() is None:
        return ""
    return f"the Prometheus adapter ended:\n{shell.tail((folder / 'adapter.log').read_text(errors='replace'))}"
