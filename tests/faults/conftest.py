"""An API server for the tests of faults, and in front of it a proxy for each test or module."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.faults.access import Access
from tests.faults.proxy import Proxy
from tests.faults.stage import Stage
from tests.integration.conftest import (
    cluster,
    kube,
    new_name,
    operator_kubeconfig,
    pytest_runtest_makereport,
    report_on,
)
from tests.integration.world import FIRST
from tools.cluster.api import ApiOnlyCluster
from tools.leader_worker_set import controller
from tools.prometheus_operator import crds
from tools.testbed.kube import Kube

__all__ = ["cluster", "kube", "operator_kubeconfig", "pytest_runtest_makereport"]

NewStage = Callable[[], Stage]


@pytest.fixture(scope="session")
def access(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Past the proxy."""
    with Access(cluster.kubeconfig, tmp_path_factory.mktemp("access")) as made:
        yield made


@pytest.fixture
def new_stage(
    kube: Kube, access: Access, operator_kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[NewStage]:
    """Makes as many namespaces, each with a proxy, as a test wants."""
    with ExitStack() as stack:

        def make() -> Stage:
            made = stack.enter_context(_stage(kube, access, operator_kubeconfig, new_name(request.node), tmp_path))
            report_on(request.node, made)
            return made

        yield make


@pytest.fixture
def stage(new_stage: NewStage) -> Stage:
    """One of them."""
    return new_stage()


@pytest.fixture(scope="session")
def served(
    kube: Kube, access: Access, operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """One for all, with an operator, a resource and two engines that have its schedule."""
    with _stage(kube, access, operator_kubeconfig, "served", tmp_path_factory.mktemp("served")) as made:
        made.operator()
        made.create(replicas=2)
        made.wait_settled(FIRST, 2)
        yield made


@pytest.fixture(scope="session")
def monitored(cluster: ApiOnlyCluster) -> None:
    """The API server knows PodMonitors."""
    crds.install(cluster.kubeconfig, ["podmonitors"])


@pytest.fixture(scope="module")
def grouped(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The API server knows LeaderWorkerSets, and their controller runs."""
    with controller.running(cluster.kubeconfig, tmp_path_factory.mktemp("controller")):
        yield


@pytest.fixture
def healthy(served: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The shared stage without a fault, before and after, its operator alive."""
    report_on(request.node, served)
    operator = served.operators[0]
    if not operator.running:
        operator.start()
    yield served
    served.proxy.lift()
    served.proxy.catch_up()


@contextmanager
def _stage(kube: Kube, access: Access, operator: Path, name: str, directory: Path) -> Iterator[Stage]:
    with Proxy(access.server, access.tls) as proxy, Stage(kube, access, operator, name, directory, proxy) as made:
        assert isinstance(made, Stage)
        yield made
