"""One API server for the campaign, with every kind that the operator may make but LeaderWorkerSets, which do nothing
without their controller; one operator for one namespace."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.campaign.server import Server
from tests.integration.conftest import log_in, new_world, prepare
from tests.integration.operator_process import OperatorProcess
from tests.integration.world import World
from tools.cluster.api import ApiOnlyCluster
from tools.prometheus_operator import crds
from tools.testbed.kube import Kube
from tools.testbed.module_crds import HTTP_ROUTE, INFERENCE_POOL

NAMESPACE: Final = "campaign"


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[Path]:
    """The administrator's."""
    with ApiOnlyCluster() as running:
        prepare(running.kubeconfig)
        crds.install(running.kubeconfig, ["podmonitors"])
        INFERENCE_POOL.install(running.kubeconfig)
        HTTP_ROUTE.install(running.kubeconfig)
        Kube(running.kubeconfig).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield running.kubeconfig


@pytest.fixture(scope="session")
def login(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's kubeconfig, with its own rights."""
    path = tmp_path_factory.mktemp("login") / "kubeconfig"
    log_in(kubeconfig, path)
    return path


@pytest.fixture(scope="session")
def operator(login: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator of the campaign's namespace."""
    made = OperatorProcess(login, tmp_path_factory.mktemp("operator") / "operator.log", NAMESPACE)
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def world(kubeconfig: Path, login: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A namespace beside the campaign's, for what needs engines."""
    with new_world(Kube(kubeconfig), kubeconfig, login, tmp_path, request.node) as made:
        yield made


@pytest.fixture
def server(kubeconfig: Path, operator: OperatorProcess, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server under an operator that must be as well afterwards as before."""
    request.node.stash[_OPERATOR] = operator
    with Server(kubeconfig, NAMESPACE) as made:
        yield made


_OPERATOR: Final = pytest.StashKey[OperatorProcess]()


def complaints(operator: OperatorProcess) -> list[str]:
    """What no operator may say or do."""
    gone = [] if operator.running else ["the operator has ended"]
    words = ("Traceback", "fault of the operator", '"level": "error"', '"level":"error"')
    return gone + [line for line in operator.text().splitlines() if any(word in line for word in words)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    """Attach the operator's log to the report of a test that failed."""
    report: pytest.TestReport = yield
    operator = item.stash.get(_OPERATOR, None)
    if report.failed and operator is not None:
        report.sections.append(("operator log", operator.text()[-8000:]))
    return report
