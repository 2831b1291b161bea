"""CRDs out of the Go modules that define them: the pinned version, and no copy in this repository."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.cluster import gobuild, paths, shell
from tools.cluster.api import kubectl
from tools.cluster.errors import ClusterError
from tools.testbed.crd import wait_established


@dataclass(frozen=True)
class ModuleCrds:
    """Some CRDs of one API group. `pinned` is the directory below tools/cluster/go that names the module's version."""

    pinned: str
    module: str
    folder: Path
    """Where in the module the manifests are, called GROUP_PLURAL.yaml."""
    group: str
    plurals: Sequence[str]

    def files(self, *plurals: str) -> list[Path]:
        """The manifests of these kinds, of all without any. ClusterError where Go cannot fetch the module."""
        folder = module_folder(self.pinned, self.module) / self.folder
        return [folder / f"{self.group}_{plural}.yaml" for plural in plurals or self.plurals]

    def install(self, kubeconfig: Path, *plurals: str) -> None:
        """Install them and wait until the API server serves them. ClusterError with kubectl's words if it refuses."""
        sources = [word for file in self.files(*plurals) for word in ("--filename", str(file))]
        _run(kubeconfig, "apply", "--server-side", "--force-conflicts", *sources)
        wait_established(kubeconfig, *self._names(plurals))

    def remove(self, kubeconfig: Path, *plurals: str) -> None:
        """Remove them, and with them every object of their kinds."""
        names = [f"crd/{name}" for name in self._names(plurals)]
        _run(kubeconfig, "delete", "--ignore-not-found", "--timeout=60s", *names)

    def _names(self, plurals: Sequence[str]) -> list[str]:
        return [f"{plural}.{self.group}" for plural in plurals or self.plurals]


LEADER_WORKER_SET: Final = ModuleCrds(
    "lws", "sigs.k8s.io/lws", Path("config", "crd", "bases"), "leaderworkerset.x-k8s.io", ["leaderworkersets"]
)
INFERENCE_POOL: Final = ModuleCrds(
    "gateway-crds",
    "sigs.k8s.io/gateway-api-inference-extension",
    Path("config", "crd", "bases"),
    "inference.networking.k8s.io",
    ["inferencepools"],
)
KEDA: Final = ModuleCrds(
    "keda",
    "github.com/kedacore/keda/v2",
    Path("config", "crd", "bases"),
    "keda.sh",
    ["scaledobjects", "scaledjobs", "triggerauthentications", "clustertriggerauthentications"],
)
KEDA_EVENTING: Final = ModuleCrds(
    "keda",
    "github.com/kedacore/keda/v2",
    Path("config", "crd", "bases"),
    "eventing.keda.sh",
    ["cloudeventsources", "clustercloudeventsources"],
)
HTTP_ROUTE: Final = ModuleCrds(
    "gateway-crds",
    "sigs.k8s.io/gateway-api",
    Path("config", "crd", "standard"),
    "gateway.networking.k8s.io",
    ["httproutes"],
)


def module_folder(pinned: str, module: str) -> Path:
    """Where Go keeps the source of a pinned module; fetched on the first call. ClusterError where Go cannot."""
    shown = shell.run(
        [gobuild.go(), "mod", "download", "-json", module],
        cwd=paths.PACKAGE / "go" / pinned, env={"GOFLAGS": "", "GOWORK": "off"}, timeout=600,
    )  # fmt: skip
    return Path(json.loads(shown)["Dir"])


def _run(kubeconfig: Path, *arguments: str) -> None:
    command = [str(kubectl()), "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise ClusterError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
