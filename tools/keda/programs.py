"""Runs KEDA as two processes beside a cluster: its operator, and the metrics server that autoscalers ask through the
API server.

Programs, CRDs and rights are those of its Go module, and both log in as KEDA's own service account. In a cluster they
find each other by Services and make their certificates; here they are addresses on loopback, and the certificates come
from an authority of our own. Its admission webhooks are left out: they only refuse mistakes in a ScaledObject.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from tools.cluster import ports, shell
from tools.cluster.api import kubectl, program
from tools.cluster.certificates import Authority
from tools.cluster.versions import KEDA_METRICS_SERVER, KEDA_OPERATOR
from tools.monitoring.server import end_with_parent
from tools.testbed.aggregated import AggregatedApi
from tools.testbed.login import log_in
from tools.testbed.module_crds import KEDA, KEDA_EVENTING, module_folder

NAMESPACE: Final = "keda"
ACCOUNT: Final = "keda-operator"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"

_METRICS: Final = AggregatedApi("keda-metrics-apiserver", "external.metrics.k8s.io", ["v1beta1"], NAMESPACE)
_RIGHTS: Final = (
    "service_account/service_account.yaml",
    *(f"{folder}/{file}.yaml" for folder in ("rbac", "metrics-server") for file in ("role", "role_binding")),
)
"""Below the module's `config`."""
_STOP_SECONDS: Final = 30


@dataclass(frozen=True)
class _Place:
    """Where everything of one run is: `login` is the service account's kubeconfig."""

    folder: Path
    login: Path
    operator: int
    health: int
    metrics: int

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"


@contextmanager
def running(kubeconfig: Path, folder: Path) -> Iterator[None]:
    """KEDA, with its CRDs installed; `folder` takes certificates and logs. ClusterError if it ends by itself.

    CRDs, namespace and rights stay. Delete ScaledObjects inside the block: KEDA alone lets them go.
    """
    KEDA.install(kubeconfig)
    KEDA_EVENTING.install(kubeconfig)
    _grant(kubeconfig)
    login = log_in(kubeconfig, NAMESPACE, ACCOUNT, folder / "kubeconfig")
    place = _Place(folder, login, *ports.free_ports(3))
    _certify(place.certificates)
    commands = {"operator": _operator(place), "metrics-server": _metrics_server(place)}
    with ExitStack() as stack:
        processes = {name: stack.enter_context(_process(each, _log(folder, name))) for name, each in commands.items()}
        with _METRICS.served(kubeconfig, place.metrics, lambda: _ended(folder, processes)):
            yield


def _grant(kubeconfig: Path) -> None:
    """Namespace, service account and rights, as KEDA's own installation has them."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    _kubectl(kubeconfig, "apply", "-f", "-", given=yaml.safe_dump(namespace))
    config = module_folder(KEDA_OPERATOR.module, KEDA.module) / "config"
    _kubectl(kubeconfig, "apply", *(word for file in _RIGHTS for word in ("-f", str(config / file))))


def _certify(folder: Path) -> None:
    """One certificate for both: they show it to each other, and the metrics server to the API server."""
    folder.mkdir(parents=True)
    authority = Authority(folder)
    authority.create()
    authority.issue("tls", "keda", addresses=["IP:127.0.0.1"])


def _operator(place: _Place) -> list[str | Path]:
    return [
        program(KEDA_OPERATOR.name),
        f"--kubeconfig={place.login}",
        f"--cert-dir={place.certificates}",
        f"--metrics-service-bind-address=127.0.0.1:{place.operator}",
        f"--health-probe-bind-address=127.0.0.1:{place.health}",
        "--enable-prometheus-metrics=false",
    ]


def _metrics_server(place: _Place) -> list[str | Path]:
    return [
        program(KEDA_METRICS_SERVER.name),
        *(f"--{use}kubeconfig={place.login}" for use in ("", "lister-", "authentication-", "authorization-")),
        "--bind-address=127.0.0.1",
        f"--secure-port={place.metrics}",
        f"--cert-dir={place.certificates}",
        f"--tls-cert-file={place.certificates / 'tls.crt'}",
        f"--tls-private-key-file={place.certificates / 'tls.key'}",
        f"--metrics-service-address=127.0.0.1:{place.operator}",
        "--port=0",
    ]


@contextmanager
def _process(command: list[str | Path], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=_environment(), preexec_fn=end_with_parent
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _environment() -> dict[str, str]:
    """Of a pod of KEDA's; but the cluster is the one of the kubeconfig."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_SERVICE")}
    return {**kept, "WATCH_NAMESPACE": "", "POD_NAMESPACE": NAMESPACE, "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE}


def _ended(folder: Path, processes: Mapping[str, "subprocess.Popen[bytes]"]) -> str:
    """Which of them has ended, with the last lines of its log; nothing while all run."""
    gone = next((name for name, process in processes.items() if process.poll() is not None), None)
    if gone is None:
        return ""
    return f"KEDA's {gone} ended:\n{shell.tail(_log(folder, gone).read_text(errors='replace'))}"


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


def _kubectl(kubeconfig: Path, *arguments: str, given: str | None = None) -> None:
    shell.run([kubectl(), "--kubeconfig", kubeconfig, *arguments], stdin=given)
