"""An autoscaler on a real metric of a real engine: vLLM's queue, by Prometheus and its adapter, to /scale and back.

Rule, scrape configuration and autoscaler are those of docs/how-to/autoscaling.md and monitoring.md.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.fleet import PROMPTS
from tools.cluster.api import full_node_kubeconfig, program
from tools.cluster.versions import PROMETHEUS
from tools.metrics_adapter import adapter
from tools.monitoring import server
from tools.monitoring.scrape import documented
from tools.testbed.engine import pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity
from tools.testbed.load import Load
from tools.testbed.manifests import MAX_NUM_SEQS
from tools.testbed.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SECONDS: Final = 180.0
STREAMS: Final = MAX_NUM_SEQS + 16
"""More requests than the engine takes at once: the rest waits in its queue, and vLLM counts it."""


def autoscaler(handle: Handle) -> dict[str, Any]:
    """The page's for this resource, with two replicas at most, and scaling down at once."""
    found = adapter.documented("apiVersion: autoscaling/v2")
    found["metadata"] = {"name": handle.name, "namespace": handle.namespace}
    found["spec"]["scaleTargetRef"]["name"] = handle.name
    found["spec"]["maxReplicas"] = 2
    found["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    return found


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[None]:
    """Prometheus and its adapter, on the node's engines."""
    kubeconfig = full_node_kubeconfig()
    config = server.scraping(documented(kubeconfig))
    with (
        server.running(tmp_path / "prometheus", config, program=program(PROMETHEUS.name)) as found,
        adapter.running(kubeconfig, found.url, tmp_path / "adapter", adapter.documented()),
    ):
        yield


def wait_replicas(handle: Handle, count: int) -> None:
    """Wait until the autoscaler has set the resource's own number, and pods follow."""
    what = f"{count} replicas"
    wait_for(what, lambda: handle.resource()["spec"]["replicas"], lambda n: n == count, SECONDS, 0.5)
    wait_for(f"{count} pods", handle.pods, lambda pods: len(pods) == count, CHANGE_TIMEOUT)


@pytest.mark.usefixtures("metrics")
def test_a_queue_scales_up_and_its_end_scales_down(shared: Handle) -> None:
    before = shared.pod()
    scaler = autoscaler(shared)
    shared.kube.apply(scaler)
    try:
        url = pod_url(before["status"]["podIP"])
        with Load([url], PROMPTS, STREAMS, 64) as load:
            wait_replicas(shared, 2)
        assert load.failures == []
        assert identity(before) in {identity(pod) for pod in shared.pods()}, "the engine that served goes on"
        wait_replicas(shared, 1)
        assert shared.child("Deployment")["spec"]["replicas"] == 1
    finally:
        shared.kube.delete("HorizontalPodAutoscaler", shared.namespace, shared.name)
        shared.patch({"replicas": 1})
    shared.wait_ready()
    assert identity(shared.pod()) == identity(before)
