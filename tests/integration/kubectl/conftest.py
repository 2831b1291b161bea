"""A deployment that lives for a module, and the command."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.engine_stand_in import StandIn
from tests.integration.kubectl.tool import Dsd, Live
from tests.integration.pod_addresses import pod_address
from tests.integration.world import World
from tools.cluster.api import ApiOnlyCluster
from tools.testbed.kube import Kube


@pytest.fixture(scope="module")
def live(
    kube: Kube, cluster: ApiOnlyCluster, operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Live]:  # fmt: skip
    """A namespace with an operator, and `demo` with two ready pods whose engines answer."""
    namespace = request.module.__name__.rpartition(".")[2].replace("_", "-")
    directory = tmp_path_factory.mktemp(namespace)
    with World(kube, cluster.kubeconfig, operator_kubeconfig, namespace, directory) as world, ExitStack() as stack:
        world.operator()
        world.create(replicas=2)
        pods = world.wait_pods(2)
        world.wait_child("ConfigMap")
        engines = []
        for pod in pods:
            engine = stack.enter_context(StandIn(stack.enter_context(pod_address()), world.config_file))
            engine.read_file()
            world.set_pod(pod, engine.address)
            engines.append(engine)
        world.wait_schedule(applied=2)
        yield Live(world, Dsd(cluster.kubeconfig, namespace), engines, [pod["metadata"]["name"] for pod in pods])


@pytest.fixture
def dsd(world: World, cluster: ApiOnlyCluster) -> Dsd:
    """The command, in this test's own namespace."""
    return Dsd(cluster.kubeconfig, world.namespace)
