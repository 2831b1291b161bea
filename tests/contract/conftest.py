"""One API server for the contract tests, with the CRD installed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.cluster.api import ApiOnlyCluster, kubectl
from tools.cluster.paths import REPOSITORY
from tools.testbed.waiting import wait_for


@pytest.fixture(scope="session")
def api_server() -> Iterator[Path]:
    """The kubeconfig of an API server that has established the CRD (so every CEL rule compiles within its cost)."""
    with ApiOnlyCluster() as cluster:
        run_kubectl(cluster.kubeconfig, "apply", "--server-side", "-f", str(REPOSITORY / "crds"))
        wait_for("the CRD is served and explained", lambda: serves(cluster.kubeconfig), bool, 30)
        yield cluster.kubeconfig


def serves(kubeconfig: Path) -> bool:
    """Whether the API server serves the resource and has published its schema, moments after taking the CRD."""
    base = [str(kubectl()), "--kubeconfig", str(kubeconfig)]
    commands = ([*base, "get", "dsd"], [*base, "explain", "dsd"])
    return all(subprocess.run(c, check=False, capture_output=True, timeout=60).returncode == 0 for c in commands)


def run_kubectl(kubeconfig: Path, *arguments: str) -> str:
    """What kubectl printed; raises CalledProcessError with its error text when it fails."""
    command = [str(kubectl()), "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout
