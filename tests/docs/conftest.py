"""An API server with the chart installed, as the documentation's reader has it, but without a node."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tools.cluster.api import ApiOnlyCluster, kubectl, program
from tools.cluster.paths import REPOSITORY
from tools.testbed.crd import wait_established

RELEASE: Final = "dsd-operator"
_CRD: Final = "dsddeployments.dsd-operator.io"
_numbers = itertools.count(1)


class Cluster:
    """The API server; every page gets a namespace of its own and the release that the pages speak of."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def run(self, tool: str, *arguments: str | Path) -> str:
        """What the tool printed; AssertionError with its complaint when it fails."""
        executable = kubectl() if tool == "kubectl" else program(tool)
        command = [executable, "--kubeconfig", self.kubeconfig, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{tool} {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def install(self) -> None:
        """The chart as a reader installs it; nothing where it is there."""
        if RELEASE not in self.run("helm", "list", "-A", "-q").split():
            where = ["--namespace", RELEASE, "--create-namespace"]
            self.run("helm", "install", RELEASE, REPOSITORY / "charts" / "dsd-operator", *where)
            wait_established(self.kubeconfig, _CRD)

    def uninstall(self) -> None:
        """For a page that installs it. The CRD stays."""
        self.run("helm", "uninstall", RELEASE, "--namespace", RELEASE, "--ignore-not-found")

    def namespace(self, folder: Path) -> Path:
        """A kubeconfig whose namespace is new."""
        name = f"docs-{next(_numbers)}"
        self.run("kubectl", "create", "namespace", name)
        content = yaml.safe_load(self.kubeconfig.read_text())
        content["contexts"][0]["context"]["namespace"] = name
        path = folder / ".kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One for all pages."""
    with ApiOnlyCluster() as running:
        made = Cluster(running.kubeconfig)
        made.install()
        yield made
