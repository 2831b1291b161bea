"""One API server for the session, with the CRD and the chart's rights; one namespace for each test."""

import itertools
import json
import subprocess
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart import rendered
from tests.integration.world import World
from tools.cluster.api import ApiOnlyCluster, kubectl
from tools.testbed import login
from tools.testbed.crd import wait_established
from tools.testbed.kube import Kube

ROOT: Final = Path(__file__).resolve().parents[2]
RELEASE: Final = "dsd-operator"
SYSTEM: Final = "dsd-system"
_NEEDED: Final = frozenset({"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})


@pytest.fixture(scope="session")
def cluster() -> Iterator[ApiOnlyCluster]:
    """The API server and the controllers, with everything that the operator needs installed.

    It writes down who asked for what: whatever the tests of a session make the operator do, it must have the right to.
    """
    with ApiOnlyCluster(audit=True) as running:
        prepare(running.kubeconfig)
        yield running
        assert not_allowed(running.audit(f"system:serviceaccount:{SYSTEM}:{RELEASE}")) == []


@pytest.fixture(scope="session")
def kube(cluster: ApiOnlyCluster) -> Kube:
    """The administrator's client."""
    return Kube(cluster.kubeconfig)


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with a token of the operator's own service account."""
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    log_in(cluster.kubeconfig, path)
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
    with new_world(kube, cluster.kubeconfig, operator_kubeconfig, tmp_path, request.node) as made:
        yield made


@contextmanager
def new_world(kube: Kube, admin: Path, operator: Path, directory: Path, item: pytest.Function) -> Iterator[World]:
    """A namespace of its own on any API server; its operators' logs go into the test's report."""
    with World(kube, admin, operator, new_name(item), directory) as made:
        report_on(item, made)
        yield made


def new_name(item: pytest.Function) -> str:
    """A namespace's name for a test, never one that is still being deleted."""
    words = item.originalname.removeprefix("test_").replace("_", "-")[:40].strip("-")
    return f"t{next(_numbers)}-{words}"


def report_on(item: pytest.Item, world: World) -> None:
    """Put the operators' logs into the report if the test fails."""
    item.stash[_WORLD] = world


def prepare(kubeconfig: Path) -> None:
    """Bring an API server what the operator needs: its namespace, the CRD, the chart's rights."""
    admin = _Admin(kubeconfig)
    admin.run("create", "namespace", SYSTEM)
    admin.run("apply", "--server-side", "-f", str(ROOT / "crds"))
    admin.run("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": _rights()}))
    wait_established(kubeconfig, "dsddeployments.dsd-operator.io")


def log_in(kubeconfig: Path, path: Path) -> None:
    """Write a kubeconfig with a fresh token of the operator's own service account."""
    login.log_in(kubeconfig, SYSTEM, RELEASE, path)


def not_allowed(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """The requests of an audit log for which somebody had no right; what admission refuses is another matter."""
    decision = "authorization.k8s.io/decision"
    return sorted({f"{e['verb']} {e['requestURI']}" for e in events if e["annotations"].get(decision) != "allow"})


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
    return [m for m in rendered(release=RELEASE, namespace=SYSTEM) if m["kind"] in _NEEDED]
