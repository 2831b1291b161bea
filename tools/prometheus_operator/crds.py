"""The CRDs of the Prometheus operator, out of its own Go module: the version that is built."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.cluster.versions import PROMETHEUS_OPERATOR
from tools.testbed.module_crds import ModuleCrds

ALL: Final = (
    "alertmanagerconfigs", "alertmanagers", "podmonitors", "probes", "prometheusagents", "prometheuses",
    "prometheusrules", "scrapeconfigs", "servicemonitors", "thanosrulers",
)  # fmt: skip
"""By plural. The operator does not start without those that it is told to watch."""

_CRDS: Final = ModuleCrds(
    PROMETHEUS_OPERATOR.module,
    "github.com/prometheus-operator/prometheus-operator",
    Path("example", "prometheus-operator-crd"),
    "monitoring.coreos.com",
    ALL,
)


def files(plurals: Iterable[str] = ALL) -> list[Path]:
    """The manifests of these kinds. Fetches the module once; ClusterError where Go cannot."""
    return _CRDS.files(*plurals)


def install(kubeconfig: Path, plurals: Iterable[str] = ALL) -> None:
    """Install them and wait until the API server serves them. ClusterError with kubectl's words when it refuses."""
    _CRDS.install(kubeconfig, *plurals)


def remove(kubeconfig: Path, plurals: Iterable[str] = ALL) -> None:
    """Remove them, and with them every object of their kinds."""
    _CRDS.remove(kubeconfig, *plurals)
