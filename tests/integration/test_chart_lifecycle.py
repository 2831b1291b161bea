"""The chart's life on a real API server: installed, upgraded, uninstalled, installed anew, and twice side by side.

Nothing runs here (there is no node): what counts is what the API server takes, and that the CRD and its resources
survive everything but their own deletion.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from tools.cluster.api import ApiOnlyCluster, program
from tools.cluster.paths import REPOSITORY

pytestmark = pytest.mark.integration

CHART: Final = REPOSITORY / "charts" / "dsd-operator"
CRD: Final = "crd/dsddeployments.dsd-operator.io"


@dataclass(frozen=True)
class Commands:
    """helm and kubectl on one cluster."""

    kubeconfig: Path

    def run(self, tool: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        command = [program(tool), "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    def ok(self, tool: str, *arguments: str | Path) -> str:
        done = self.run(tool, *arguments)
        assert done.returncode == 0, f"{tool} {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def install(self, release: str, namespace: str, *options: str) -> "subprocess.CompletedProcess[str]":
        where = ["--namespace", namespace, "--create-namespace"]
        return self.run("helm", "upgrade", "--install", release, CHART, *where, *options)


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """An API server of its own, that has never seen the CRD."""
    with ApiOnlyCluster() as cluster:
        yield Commands(cluster.kubeconfig)


@pytest.fixture
def demo(commands: Commands) -> Iterator[str]:
    """A DSDDeployment that lives through the test; it needs the CRD, which a release installs first."""
    done = commands.install("first", "one")
    assert done.returncode == 0, done.stderr
    commands.ok("kubectl", "wait", "--for=condition=Established", CRD, "--timeout=30s")
    commands.ok("kubectl", "apply", "-f", REPOSITORY / "samples" / "demo-smollm2.yaml")
    yield "dsd/demo"
    commands.ok("kubectl", "delete", "dsd", "--all")
    for release, namespace in (("first", "one"), ("second", "two")):
        commands.ok("helm", "uninstall", release, "--namespace", namespace, "--ignore-not-found")
    commands.ok("kubectl", "delete", CRD)


@pytest.mark.usefixtures("demo")
def test_install_says_what_comes_next(commands: Commands) -> None:
    notes = commands.ok("helm", "get", "notes", "first", "--namespace", "one")
    assert "kubectl --namespace one rollout status deployment/first-dsd-operator" in notes


@pytest.mark.usefixtures("demo")
def test_an_upgrade_brings_the_crd_of_the_new_chart(commands: Commands) -> None:
    patch = '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]'
    commands.ok("kubectl", "patch", CRD, "--type=json", "--patch", patch)
    done = commands.install("first", "one")
    assert done.returncode == 0, done.stderr
    stored = yaml.safe_load(commands.ok("kubectl", "get", CRD, "-o", "yaml"))
    assert "additionalPrinterColumns" in stored["spec"]["versions"][0]


def test_an_uninstall_keeps_the_crd_and_its_resources(commands: Commands, demo: str) -> None:
    commands.ok("helm", "uninstall", "first", "--namespace", "one")
    assert commands.run("kubectl", "get", "deployment,clusterrole", "-A", "-l", "helm.sh/chart").stdout == ""
    commands.ok("kubectl", "get", CRD, demo)
    done = commands.install("first", "one")
    assert done.returncode == 0, done.stderr


def test_a_release_of_another_name_takes_the_kept_crd_over(commands: Commands, demo: str) -> None:
    commands.ok("helm", "uninstall", "first", "--namespace", "one")
    refused = commands.install("second", "two")
    assert "invalid ownership metadata" in refused.stderr
    done = commands.install("second", "two", "--take-ownership")
    assert done.returncode == 0, done.stderr
    commands.ok("kubectl", "get", demo)


@pytest.mark.usefixtures("demo")
def test_two_releases_live_side_by_side(commands: Commands) -> None:
    done = commands.install("second", "two", "--set", "crds.install=false")
    assert done.returncode == 0, done.stderr
    roles = commands.ok("kubectl", "get", "clusterrole", "-l", "app.kubernetes.io/name=dsd-operator", "-o", "name")
    assert len(roles.split()) == 2


@pytest.mark.usefixtures("demo")
def test_the_account_may_do_what_it_must_and_no_more(commands: Commands) -> None:
    account = "--as=system:serviceaccount:one:first-dsd-operator"

    def may(*question: str) -> bool:
        return commands.run("kubectl", "auth", "can-i", *question, account).stdout.startswith("yes")

    for verb in ("get", "list", "watch", "create", "patch"):
        assert may(verb, "deployments.apps", "--namespace=default"), verb
    assert may("patch", "dsddeployments.dsd-operator.io/demo", "--subresource=status")
    assert may("create", "serviceaccounts/first-dsd-operator", "--subresource=token", "--namespace=one")
    assert not may("create", "serviceaccounts/default", "--subresource=token", "--namespace=one")
    assert not may("create", "serviceaccounts/first-dsd-operator", "--subresource=token", "--namespace=default")
    for verb, what in (("get", "secrets"), ("patch", "dsddeployments.dsd-operator.io"), ("delete", "pods")):
        assert not may(verb, what, "--namespace=default"), what
