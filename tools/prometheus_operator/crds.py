"""The CRDs of the Prometheus operator, out of its own Go module: the version that is built, and no copy in this
repository."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.cluster import gobuild, shell
from tools.cluster.api import kubectl
from tools.cluster.errors import ClusterError
from tools.cluster.versions import PROMETHEUS_OPERATOR
from tools.testbed.crd import wait_established

_MODULE: Final = "github.com/prometheus-operator/prometheus-operator"
_FOLDER: Final = Path("example", "prometheus-operator-crd")
_GROUP: Final = "monitoring.coreos.com"

ALL: Final = (
    "alertmanagerconfigs", "alertmanagers", "podmonitors", "probes", "prometheusagents", "prometheuses",
    "prometheusrules", "scrapeconfigs", "servicemonitors", "thanosrulers",
)  # fmt: skip
"""By plural. The operator does not start without those that it is told to watch."""


def files(plurals: Iterable[str] = ALL) -> list[Path]:
    """The manifests of these kinds. Fetches the module once; ClusterError where Go cannot."""
    shown = shell.run(
        [gobuild.go(), "mod", "download", "-json", _MODULE],
        cwd=gobuild.module_directory(PROMETHEUS_OPERATOR), env={"GOFLAGS": "", "GOWORK": "off"}, timeout=600,
    )  # fmt: skip
    folder = Path(json.loads(shown)["Dir"]) / _FOLDER
    return [folder / f"{_GROUP}_{plural}.yaml" for plural in plurals]


def install(kubeconfig: Path, plurals: Iterable[str] = ALL) -> None:
    """Install them and wait until the API server serves them. ClusterError with kubectl's words when it refuses."""
    wanted = list(plurals)
    sources = [word for file in files(wanted) for word in ("--filename", str(file))]
    _run(kubeconfig, "apply", "--server-side", "--force-conflicts", *sources)
    wait_established(kubeconfig, *(f"{plural}.{_GROUP}" for plural in wanted))


def remove(kubeconfig: Path, plurals: Iterable[str] = ALL) -> None:
    """Remove them, and with them every object of their kinds."""
    names = [f"crd/{plural}.{_GROUP}" for plural in plurals]
    _run(kubeconfig, "delete", "--ignore-not-found", "--timeout=60s", *names)


def _run(kubeconfig: Path, *arguments: str) -> None:
    command = [str(kubectl()), "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise ClusterError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
