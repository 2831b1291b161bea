"""What the demo stands on: cluster, images, chart, the model on a volume. Each function can run again."""

import json
import os
import subprocess
import sys
from typing import Final

from tools.cluster import api
from tools.cluster.errors import ClusterError
from tools.cluster.paths import REPOSITORY
from tools.demo import terminal
from tools.demo.commands import kubectl, run
from tools.demo.names import MODEL_CLAIM, NAMESPACE
from tools.models import smollm2
from tools.testbed import install, manifests

VOLUME: Final = f"{NAMESPACE}-models"
"""What the test bed's manifest calls the volume of this namespace."""


def own_cluster() -> bool:
    """Whether the demo starts and stops the cluster, rather than use the one that DSD_KUBECONFIG names."""
    return not os.environ.get("DSD_KUBECONFIG")


def cluster_tool(action: str) -> None:
    """Run `python -m tools.cluster ACTION`, which shows its own progress."""
    status = subprocess.run([sys.executable, "-m", "tools.cluster", action], cwd=REPOSITORY, check=False).returncode
    if status != 0:
        raise ClusterError(f"`python -m tools.cluster {action}` failed with status {status}")


def apply_model() -> None:
    """Convert the model if need be and put it on a volume in the demo's namespace."""
    directory = smollm2.ensure().parent
    objects = [manifests.namespace(NAMESPACE), *manifests.model_volume(NAMESPACE, str(directory), MODEL_CLAIM)]
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    kubectl("apply", "--filename", "-", stdin=json.dumps(items), show=False)


def install_chart() -> None:
    """Install or upgrade the operator and wait until it is ready."""
    images = api.images()
    terminal.shown(
        f"helm upgrade --install {install.RELEASE} charts/dsd-operator --namespace {install.NAMESPACE}"
        " --create-namespace --wait"
    )
    values = install.image_values(images.operator, images.runtime)
    install.helm_upgrade(api.full_node_kubeconfig(), values)


def remove_installation() -> None:
    """Remove the demo's resource, namespaces, volume and release from a cluster that stays. The CRD is kept."""
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
    kubectl("delete", "persistentvolume", VOLUME, "--ignore-not-found")
    run("helm", "uninstall", install.RELEASE, "--namespace", install.NAMESPACE, "--ignore-not-found", "--wait")
    kubectl("delete", "namespace", install.NAMESPACE, "--ignore-not-found")
