"""The chart, installed on the cluster in use with the images of this checkout; where the models lie on the node."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.cluster import api, locks, paths
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

RELEASE: Final = "dsd-operator"
NAMESPACE: Final = "dsd-operator"
CHART: Final = paths.REPOSITORY / "charts" / "dsd-operator"
CRD: Final = "dsddeployments.dsd-operator.io"

_HELM_SECONDS: Final = 240
_CRD_SECONDS: Final = 60


@dataclass(frozen=True)
class Installation:
    """The running operator. The chart names Deployment and ServiceAccount like the release."""

    kube: Kube
    runtime_image: str
    namespace: str = NAMESPACE
    deployment: str = RELEASE
    service_account: str = RELEASE

    def operator_pods(self) -> list[Json]:
        """The operator's pods, those on their way out included."""
        return self.kube.list("Pod", self.namespace, f"app.kubernetes.io/instance={RELEASE}")

    def mint(self, audience: str) -> str:
        """A token of the operator's ServiceAccount, as the operator itself gets them."""
        return self.kube.token(self.namespace, self.service_account, audience)


def models_directory() -> Path:
    """Where the tiny models lie, on this machine, which is the node."""
    return paths.cache_root() / "models" / "tiny"


def install() -> Installation:
    """Install or upgrade the chart and wait until the operator is ready. ClusterError when there is no cluster."""
    kubeconfig, images = api.full_node_kubeconfig(), api.images()
    helm_upgrade(kubeconfig, image_values(images.operator, images.runtime))
    return Installation(Kube(kubeconfig), images.runtime)


def image_values(operator: str, runtime: str) -> dict[str, str]:
    """Chart values for two full image references."""
    values: dict[str, str] = {}
    for key, reference in (("image", operator), ("engineImage", runtime)):
        repository, _, tag = reference.rpartition(":")
        values |= {f"{key}.repository": repository, f"{key}.tag": tag}
    return values


def helm_upgrade(kubeconfig: Path, values: dict[str, str], chart: Path = CHART) -> None:
    """`helm upgrade --install` of the chart; RuntimeError with what helm said when it fails."""
    with locks.locked(paths.cache_root() / "helm.lock", "installing the chart"):
        _remove_if_interrupted(kubeconfig)
        options = ["--create-namespace", "--wait", "--timeout", f"{_HELM_SECONDS}s"]
        for key, value in values.items():
            options += ["--set-string", f"{key}={value}"]
        _helm(kubeconfig, "upgrade", "--install", RELEASE, str(chart), *options)


def uninstall(kube: Kube, kubeconfig: Path) -> None:
    """Remove the release, and the CRD with every DSDDeployment: the cluster has never had an operator."""
    with locks.locked(paths.cache_root() / "helm.lock", "removing the chart"):
        _helm(kubeconfig, "uninstall", RELEASE, "--ignore-not-found", "--wait", "--timeout", f"{_HELM_SECONDS}s")
        kube.delete("CustomResourceDefinition", None, CRD)
        wait_for("the CRD to be gone", lambda: kube.get("CustomResourceDefinition", None, CRD), _is_none, _CRD_SECONDS)


def _is_none(found: Json | None) -> bool:
    return found is None


def _remove_if_interrupted(kubeconfig: Path) -> None:
    """Remove a release whose installation was killed: helm would refuse to touch it for ever. The CRD stays."""
    pending = json.loads(_helm(kubeconfig, "list", "--pending", "--filter", f"^{RELEASE}$", "--output", "json"))
    if pending:
        _helm(kubeconfig, "uninstall", RELEASE, "--wait")


def _helm(kubeconfig: Path, *arguments: str) -> str:
    """Run helm in the release's namespace; returns what it prints."""
    common: list[str | Path] = ["--kubeconfig", kubeconfig, "--namespace", NAMESPACE]
    command = [api.program("helm"), *arguments, *common]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_HELM_SECONDS + 60, check=False)
    if done.returncode:
        raise RuntimeError(f"helm {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
