"""One API server for the session, with the CRD and the chart's rights; one namespace for each test."""

import itertools
import json
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.integration.world import World
from tools.cluster.api import ApiOnlyCluster, kubectl, program
from tools.cluster.versions import KUBERNETES
from tools.testbed.kube import Kube

ROOT: Final = Path(__file__).resolve().parents[2]
RELEASE: Final = "dsd-operator"
SYSTEM: Final = "dsd-system"
_NEEDED: Final = frozenset({"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})


@pytest.fixture(scope="session")
def cluster() -> Iterator[ApiOnlyCluster]:
    """The API server and the controllers, with everything that the operator needs installed."""
    with ApiOnlyCluster() as running:
        admin = _Admin(running.kubeconfig)
        admin.run("create", "namespace", SYSTEM)
        admin.run("apply", "--server-side", "-f", str(ROOT / "crds"))
        admin.run("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": _rights()}))
        admin.run("wait", "--for=condition=Established", "crd/dsddeployments.dsd-operator.io", "--timeout=30s")
        yield running


@pytest.fixture(scope="session")
def kube(cluster: ApiOnlyCluster) -> Kube:
    """The administrator's client."""
    return Kube(cluster.kubeconfig)


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with a token of the operator's own service account."""
    admin = _Admin(cluster.kubeconfig)
    token = admin.run("create", "token", RELEASE, "--namespace", SYSTEM, "--duration=2h").strip()
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["users"] = [{"name": "operator", "user": {"token": token}}]
    content["contexts"][0]["context"]["user"] = "operator"
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def world(
    kube: Kube,
    cluster: ApiOnlyCluster,
    operator_kubeconfig: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    """A namespace for this test."""
    words = str(request.node.originalname).removeprefix("test_").replace("_", "-")[:40].strip("-")
    name = f"t{next(_numbers)}-{words}"  # never one that is still being deleted
    with World(kube, cluster.kubeconfig, operator_kubeconfig, name, tmp_path) as made:
        request.node.stash[_WORLD] = made
        yield made


_numbers = itertools.count(1)
_WORLD: Final = pytest.StashKey[World]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the operator's log to the report of a test that failed."""
    report = yield
    world = item.stash.get(_WORLD, None)
    if report.failed and world is not None:
        report.sections += [("operator log", operator.text()[-8000:]) for operator in world.operators]
    return report


class _Admin:
    """kubectl as the administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self._command = [str(kubectl()), "--kubeconfig", str(kubeconfig)]

    def run(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run([*self._command, *arguments], input=given, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout


def _rights() -> list[Any]:
    """The chart's service account and its rights: the operator gets no others here."""
    chart = str(ROOT / "charts" / "dsd-operator")
    command = [str(program("helm")), "template", RELEASE, chart, "--namespace", SYSTEM, "--kube-version", KUBERNETES]
    rendered = subprocess.run(command, text=True, capture_output=True, check=False)
    assert rendered.returncode == 0, rendered.stderr
    return [m for m in yaml.safe_load_all(rendered.stdout) if m and m["kind"] in _NEEDED]
