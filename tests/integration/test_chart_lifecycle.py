"""The chart's life on a real API server: installed, upgraded, rolled back, uninstalled, installed anew, and twice.

Nothing runs here but the operator itself, as a process with the release's own account: what counts is what the API
server takes, and that the CRD, its resources and their children survive everything but their own deletion.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart import CHART
from tests.integration.operator_process import OperatorProcess
from tests.integration.releases import CRD, Commands, Release
from tests.integration.world import FIRST, SECOND, THIRD, World
from tools import chart
from tools.cluster.api import ApiOnlyCluster
from tools.cluster.paths import REPOSITORY
from tools.testbed.crd import wait_established
from tools.testbed.kube import Kube

pytestmark = pytest.mark.integration

MODELS: Final = "models"
WITHOUT: Final = ("--set", "crds.install=false", "--set", "dashboards.enabled=false")
"""What a second release is told to add."""

OPERATED: Final = "deployment,replicaset,pod,configmap,service,serviceaccount"


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """An API server of its own, that has never seen the CRD."""
    with ApiOnlyCluster() as cluster:
        yield Commands(cluster.kubeconfig)


@pytest.fixture(scope="module")
def one(commands: Commands) -> Release:
    """The release that comes first."""
    return Release(commands, "first", "one")


@pytest.fixture(scope="module")
def two(commands: Commands) -> Release:
    """One of another name in another namespace."""
    return Release(commands, "second", "two")


@pytest.fixture(scope="module")
def world(commands: Commands, one: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A namespace with the resource `demo`, served by the first release: its children are there, and a pod."""
    folder = tmp_path_factory.mktemp("lifecycle")
    one.install()
    login = one.log_in(folder / "first")
    with World(Kube(commands.kubeconfig), commands.kubeconfig, login, MODELS, folder) as made:
        with _operating(one, folder):
            made.create(FIRST, replicas=1)
            made.wait_children()
            made.engines(1)
            made.wait_schedule(1)
        yield made


@pytest.fixture(autouse=True)
def _as_at_first(world: World, one: Release, two: Release) -> None:
    """Each test begins with the first release alone, the CRD in its hands and `demo` operated."""
    assert world.child("Deployment") is not None
    two.uninstall()
    one.install("--take-ownership", "--reset-values")


@contextmanager
def _operating(release: Release, folder: Path) -> Iterator[OperatorProcess]:
    """The operator as this release would run it, with its account and its settings."""
    login = release.log_in(folder / f"{release.name}.kubeconfig")
    process = OperatorProcess(login, folder / f"{release.name}.log", **release.settings())
    try:
        yield process.start()
        assert process.terminate() == 0, process.text()
    finally:
        process.close()


def _children(commands: Commands) -> dict[str, Any]:
    """What belongs to `demo`, by kind and name, with its uid and the count of its changes of spec."""
    found = commands.get(OPERATED, "-n", MODELS, "-l", "app.kubernetes.io/name=dsd-engine")["items"]
    return {
        f"{item['kind']}/{item['metadata']['name']}": (item["metadata"]["uid"], item["metadata"].get("generation"))
        for item in found
    }


def _owner(commands: Commands) -> str:
    """The release that holds the CRD."""
    notes = commands.get("crd", CRD)["metadata"]["annotations"]
    return f"{notes['meta.helm.sh/release-namespace']}/{notes['meta.helm.sh/release-name']}"


def test_the_notes_give_the_next_three_commands(one: Release, commands: Commands) -> None:
    notes = commands.ok("helm", "get", "notes", one.name, "--namespace", one.namespace)
    assert "kubectl --namespace one rollout status deployment/first-dsd-operator" in notes
    assert commands.ok("kubectl", "explain", "dsd.spec", "--recursive")
    (patch,) = (line.strip() for line in notes.splitlines() if "kubectl patch" in line)
    words = patch.replace("NAME", "demo").removeprefix("kubectl ").split("'")
    commands.ok("kubectl", "-n", MODELS, *words[0].split(), words[1])
    assert "WARNING" not in notes


def test_an_upgrade_changes_what_it_should_and_no_more(one: Release, commands: Commands) -> None:
    before = _children(commands)
    one.install("--set", "logging.level=debug")
    assert one.settings()["LOG_LEVEL"] == "debug"
    assert _children(commands) == before


def test_an_upgrade_brings_the_crd_of_the_new_chart_and_a_rollback_the_old(
    one: Release, commands: Commands, world: World, tmp_path: Path
) -> None:
    before = _children(commands)
    revision = _revision(one)
    assert "later" not in world.patch(later="x")["spec"]  # a field that the CRD does not know is pruned
    one.install(chart=_chart_with_a_new_field(tmp_path))
    assert world.patch(later="x")["spec"]["later"] == "x"
    commands.ok("helm", "rollback", one.name, str(revision), "--namespace", one.namespace)
    wait_established(commands.kubeconfig, CRD)
    assert "later" not in world.schedule(FIRST)["spec"]
    assert _children(commands) == before


def test_an_upgrade_mends_a_crd_that_somebody_changed(one: Release, commands: Commands) -> None:
    patch = '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]'
    commands.ok("kubectl", "patch", "crd", CRD, "--type=json", "--patch", patch)
    one.install()
    assert "additionalPrinterColumns" in commands.get("crd", CRD)["spec"]["versions"][0]


def test_an_uninstall_keeps_the_crd_its_resources_and_their_pods(one: Release, commands: Commands) -> None:
    before = _children(commands)
    assert {"Deployment/demo", "ConfigMap/demo", "Service/demo", "ServiceAccount/demo"} < before.keys()
    assert len([key for key in before if key.startswith("Pod/")]) == 1
    one.uninstall()
    rest = "deployment,service,serviceaccount,configmap,role,rolebinding,clusterrole,clusterrolebinding,networkpolicy"
    assert commands.get(rest, "-A", "-l", "helm.sh/chart")["items"] == []
    commands.ok("kubectl", "get", "crd", CRD)
    assert _children(commands) == before
    one.install()  # without any option: the CRD is still marked as its own
    assert _children(commands) == before


def test_another_release_takes_over_and_operates_what_was_left(
    one: Release, two: Release, commands: Commands, world: World, tmp_path: Path
) -> None:
    """The children stay the very same objects; the schedule changes in place, by tokens of the new account."""
    before = _children(commands)
    one.uninstall()
    assert "invalid ownership metadata" in two.try_install().stderr
    two.install("--take-ownership")
    assert _owner(commands) == "two/second"
    with _operating(two, tmp_path):
        for schedule in (SECOND, THIRD):
            world.schedule(schedule)
            world.wait_schedule(1)
    config = world.config_file()
    assert config is not None
    assert config.auth is not None
    assert config.auth.model_dump()["subject"] == two.user
    assert _children(commands) == before


def test_a_second_release_is_told_how_to_go_without(one: Release, two: Release, commands: Commands) -> None:
    refused = two.try_install()
    assert refused.returncode != 0
    assert "belongs to release first in namespace one" in refused.stderr
    for option in WITHOUT:
        assert option in refused.stderr
    assert commands.get("deployment", "-n", "two")["items"] == []
    notes = two.install(*WITHOUT)
    assert "serves all namespaces. Where another release serves one of them" in notes
    assert _owner(commands) == "one/first"
    both = commands.get("clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/name=dsd-operator")["items"]
    assert len(both) == 4
    one.install()
    two.install(*WITHOUT)


def test_when_the_first_release_goes_the_second_may_take_the_crd(
    one: Release, two: Release, commands: Commands, world: World
) -> None:
    two.install(*WITHOUT)
    one.uninstall()
    assert world.resource()
    two.install("--reuse-values", "--set", "crds.install=true", "--take-ownership")
    assert _owner(commands) == "two/second"
    refused = one.try_install("--take-ownership")
    assert "belongs to release second in namespace two" in refused.stderr


def test_the_crd_moves_between_releases_that_stay(one: Release, two: Release, commands: Commands) -> None:
    assert "belongs to release first" in two.try_install("--take-ownership").stderr
    one.install("--reuse-values", "--set", "crds.install=false")
    two.install("--take-ownership")
    assert _owner(commands) == "two/second"


def test_the_account_may_do_what_it_must_and_no_more(one: Release, commands: Commands) -> None:
    account = f"--as={one.user}"

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


def test_a_crd_that_was_applied_by_hand_is_taken_over(one: Release, commands: Commands, world: World) -> None:
    """Last, as it takes every resource with it."""
    world.kube.delete("DSDDeployment", MODELS, "demo")
    one.uninstall()
    commands.ok("kubectl", "delete", "crd", CRD)
    commands.ok("kubectl", "apply", "--server-side", "-f", REPOSITORY / "crds")
    assert "invalid ownership metadata" in one.try_install().stderr
    one.install("--take-ownership")
    assert _owner(commands) == "one/first"


def _revision(release: Release) -> int:
    history = release.commands.ok("helm", "history", release.name, "--namespace", release.namespace, "-o", "json")
    return int(json.loads(history)[-1]["revision"])


def _chart_with_a_new_field(folder: Path) -> Path:
    """A copy of the chart whose CRD has one more optional field, as the next version might."""
    copy = Path(shutil.copytree(CHART, folder / "chart"))
    (crd,) = deepcopy(chart.sources())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["later"] = {"type": "string"}
    (copy / "templates" / "crds.yaml").write_text(chart.template([crd]))
    return copy
