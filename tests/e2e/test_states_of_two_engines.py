"""The status while one of two real engines cannot be reached, hangs, is replaced, or runs without the plug-in.

Each generation of two engines takes minutes on this node, so it is for `make test-long`.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from dsd_runtime.schedule import from_triples
from tests.states import check_events, expected_health, health, named, shows, untold
from tools.testbed import manifests
from tools.testbed.handle import CHANGE_TIMEOUT, START_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.packets import dropped
from tools.testbed.processes import hanging, process_of
from tools.testbed.site import site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NAMESPACE: Final = "dsd-two-engines"
FIRST: Final = from_triples([(1, 64, 3)])
SECOND: Final = from_triples([(1, 64, 2)])
THIRD: Final = from_triples([(1, 64, 1)])
REACHED: Final = ("operator cannot reach the pod", "degraded", "degraded by a crash")
"""States whose Warnings are still there when another one is reached."""
UNKNOWN: Final = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.99.0+cpu\n"


@pytest.fixture
def pair(installation: Installation) -> Iterator[Handle]:
    """Two engines behind one resource, starting."""
    with site(installation.kube, NAMESPACE):
        manifest = manifests.dsd_deployment(NAMESPACE, "pair", TARGET, DRAFTERS["ngram"], FIRST, replicas=2)
        installation.kube.apply(manifest)
        yield Handle(installation.kube, NAMESPACE, "pair")


def test_states_of_two_engines(pair: Handle, installation: Installation) -> None:
    reach(pair, "ready")
    first, second = pair.pods()
    if process_of(first) is None:
        pytest.skip("a pod's processes can only be stopped where they are this machine's")

    (operator,) = installation.operator_pods()
    with dropped(first, operator["status"]["podIP"]):
        pair.set_schedule(SECOND)
        reach(pair, "operator cannot reach the pod")
        assert pair.status()["schedule"]["applied"] == "1/2"
    pair.wait_applied(SECOND)

    with hanging(second):
        reach(pair, "degraded")
    reach(pair, "ready")

    pair.patch({"engine": {"maxNumSeqs": manifests.MAX_NUM_SEQS // 2}})
    reach(pair, "updating while serving")
    reach(pair, "ready")
    assert {pod["metadata"]["uid"] for pod in pair.pods()}.isdisjoint({p["metadata"]["uid"] for p in (first, second)})

    without_plugin(pair)
    reach(pair, "updating while serving")
    reach(pair, "ready")  # they were started with the schedule that is asked for
    assert "another one takes a restart" in pair.condition("ScheduleApplied")["message"]
    pair.set_schedule(THIRD)
    reach(pair, "runtime plugin off")


def reach(handle: Handle, name: str) -> None:
    """Wait for a state and its Events; health rules agree with it. What was told on the way stays."""
    state = named(name)
    found = wait_for(f"the state {name}", handle.resource, lambda r: shows(r, state), 2 * START_TIMEOUT, 0.2)
    events = wait_for("its Events", handle.events, lambda e: not untold(e, found["status"]), CHANGE_TIMEOUT, 0.2)
    check_events(events, found["status"], state, *(named(each) for each in REACHED))
    assert health(found) == expected_health(state)


def without_plugin(handle: Handle) -> None:
    """Let the image's vLLM look like one that the plug-in does not know: metadata that comes first on the path."""
    meta = {"name": "unknown-vllm", "namespace": handle.namespace}
    handle.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"METADATA": UNKNOWN}})
    spec = handle.resource()["spec"]
    item = {"key": "METADATA", "path": "vllm-0.99.0.dist-info/METADATA"}
    volume = {"name": "unknown", "configMap": {"name": meta["name"], "items": [item]}}
    pod = spec["podTemplate"]["spec"]
    (engine,) = pod["containers"]
    mount = {"name": "unknown", "mountPath": "/unknown"}
    template = {
        **pod,
        "volumes": [*pod["volumes"], volume],
        "containers": [{**engine, "volumeMounts": [*engine["volumeMounts"], mount]}],
    }
    env = [*spec["engine"]["env"], {"name": "PYTHONPATH", "value": "/unknown"}]
    handle.patch({"engine": {"env": env}, "podTemplate": {"spec": template}})
