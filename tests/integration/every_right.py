"""Makes the operator do all that it may: each right that the chart grants must be used by something here.

Whoever adds a right to charts/dsd-operator/templates/_rules.tpl adds what uses it: `test_chart_namespaced` compares the
two by the API server's audit log, both ways.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

from dsd_operator.render.history import LIMIT
from dsd_operator.render.names import names_for
from tests.integration.world import NAME, SECOND, World
from tools.leader_worker_set import controller
from tools.testbed.kube import Json
from tools.testbed.module_crds import HTTP_ROUTE, INFERENCE_POOL
from tools.testbed.waiting import wait_for

SECONDS: Final = 60.0
EXTRAS: Final[dict[str, Any]] = {
    "monitoring": {"podMonitor": {"enabled": True}},
    "networkPolicy": {"enabled": True},
    "podDisruptionBudget": {"enabled": True},
    "gateway": {
        "inferencePool": {"enabled": True, "endpointPicker": {"name": "picker"}},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    },
}
_KINDS: Final = ("PodMonitor", "NetworkPolicy", "PodDisruptionBudget", "InferencePool", "HTTPRoute")
_GROUP: Final = "LeaderWorkerSet"


def use(world: World, kubeconfig: Path, folder: Path) -> None:
    """Take a new resource through everything; the operator runs already."""
    INFERENCE_POOL.install(kubeconfig)
    HTTP_ROUTE.install(kubeconfig)
    world.create(replicas=1, cache={"size": "1Gi", "accessMode": "ReadWriteMany"}, **EXTRAS)
    world.wait_children()
    world.engines(1)
    world.wait_schedule(1)
    for kind in _KINDS:
        _wait(world, kind, there=True)
    world.schedule(SECOND)
    world.wait_schedule(1)
    world.kubectl("scale", f"deployment/{NAME}", "--replicas=2")  # is it an autoscaler's?
    wait_for("one replica", lambda: world.wait_child("Deployment")["spec"]["replicas"], lambda n: n == 1, SECONDS, 0.1)
    _without_extras(world)
    _more_envelopes_than_are_kept(world)
    _over_several_nodes(world, kubeconfig, folder)


def _without_extras(world: World) -> None:
    world.patch(monitoring=None, networkPolicy=None, gateway=None, podDisruptionBudget={"enabled": False})
    for kind in _KINDS:
        _wait(world, kind, there=False)


def _more_envelopes_than_are_kept(world: World) -> None:
    for number in range(LIMIT + 1):
        world.patch(engine={"maxNumSeqs": 64 + number})
        world.wait_status("the change to be seen", partial(_is_of, int(world.resource()["metadata"]["generation"])))


def _is_of(generation: int, status: Json) -> bool:
    return bool(status.get("observedGeneration") == generation)


def _over_several_nodes(world: World, kubeconfig: Path, folder: Path) -> None:
    """To a LeaderWorkerSet and back: each workload is deleted once the other one has taken its place."""
    with controller.running(kubeconfig, folder):
        world.patch(engine={"nodes": 2, "tensorParallelSize": 2})
        _wait(world, "Deployment", there=False)
        world.patch(engine={"nodes": 1, "tensorParallelSize": None})
        _wait(world, _GROUP, there=False)


def _wait(world: World, kind: str, there: bool) -> None:
    name = names_for(NAME).group if kind == _GROUP else NAME

    def fits() -> bool:
        return (world.kube.get(kind, world.namespace, name) is not None) is there

    wait_for(f"the {kind} to {'come' if there else 'go'}", fits, bool, SECONDS, 0.1)
