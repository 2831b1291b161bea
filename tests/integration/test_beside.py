"""What stands beside the pods, on a real API server: the Service through its types, evictions and budget, policies.

None of it touches a pod, so each test ends with the pods that it began with.
"""

import json
from typing import Any, Final

import pytest

from tests.integration.world import NAME, SECONDS, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

MONITORING: Final = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def wait_service(world: World, what: str, until: Any) -> Json:
    """The Service's spec, once it is so."""
    found = wait_for(what, lambda: world.wait_child("Service")["spec"], until, SECONDS, 0.05)
    spec: Json = found
    return spec


def port(spec: Json) -> Json:
    (only,) = spec["ports"]
    return dict(only)


def wait_gone(world: World, kind: str) -> None:
    wait_for(f"the {kind} to go", lambda: world.child(kind), lambda found: found is None, SECONDS, 0.05)


# The Service


def test_a_service_changes_its_type_and_keeps_its_address(world: World) -> None:
    world.operator()
    world.create()
    first = world.wait_child("Service")["spec"]
    pods = [pod["metadata"]["uid"] for pod in world.wait_pods(1)]
    assert (first["type"], port(first)["port"], "nodePort" in port(first)) == ("ClusterIP", 8000, False)

    world.patch(service={"type": "NodePort"})
    outside = wait_service(world, "a node port", lambda s: s["type"] == "NodePort" and "nodePort" in port(s))
    assert outside["clusterIP"] == first["clusterIP"]

    world.patch(service={"port": 80})
    moved = wait_service(world, "port 80", lambda s: port(s)["port"] == 80)
    assert port(moved)["targetPort"] == "http"
    world.wait_status("the URL to follow", lambda s: s.get("url") == f"http://{NAME}.{world.namespace}.svc:80")

    world.patch(service={"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]})
    wait_service(world, "a load balancer", lambda s: s.get("loadBalancerSourceRanges") == ["10.0.0.0/8"])

    world.patch(service={"type": "ClusterIP", "port": None, "loadBalancerSourceRanges": None})
    last = wait_service(world, "the first type again", lambda s: s["type"] == "ClusterIP" and port(s)["port"] == 8000)
    assert last == first
    assert [pod["metadata"]["uid"] for pod in world.wait_pods(1)] == pods


def test_annotations_and_labels_of_the_service_come_and_go_and_those_of_others_stay(world: World) -> None:
    world.operator()
    world.create(service={"annotations": {"cloud.example.com/type": "nlb"}, "labels": {"team": "a"}})
    own = world.wait_child("Service")["metadata"]
    assert own["annotations"] == {"cloud.example.com/type": "nlb"}
    assert own["labels"]["team"] == "a"
    world.kubectl("annotate", "service", NAME, "cloud.example.com/id=42")
    world.patch(service={"annotations": None, "labels": {"team": "b"}})

    def changed(meta: Json) -> bool:
        return bool(meta["labels"]["team"] == "b")

    meta = wait_for("the labels", lambda: world.wait_child("Service")["metadata"], changed, SECONDS, 0.05)
    assert meta["annotations"] == {"cloud.example.com/id": "42"}


def test_two_families_on_a_cluster_of_one(world: World) -> None:
    world.operator()
    world.create(service={"ipFamilyPolicy": "PreferDualStack"})
    assert world.wait_child("Service")["spec"]["ipFamilies"] == ["IPv4"]
    world.patch(service={"ipFamilyPolicy": "RequireDualStack"})
    ready = world.wait_condition("Ready", reason="ApplyFailed")
    assert "Service demo" in ready["message"]
    assert "ipFamilyPolicy" in ready["message"]
    world.patch(service={"ipFamilyPolicy": None})
    world.wait_condition("Progressing", status="True")


def test_a_port_that_another_service_holds_is_told_and_heals(world: World) -> None:
    world.operator()
    world.kubectl("create", "service", "nodeport", "other", "--tcp=80", "--node-port=30123")
    world.create(service={"type": "NodePort", "nodePort": 30123})
    assert "30123" in world.wait_condition("Ready", reason="ApplyFailed")["message"]
    assert world.wait_child("Deployment"), "pods do not wait for it"
    world.kubectl("delete", "service", "other")
    world.patch(service={"nodePort": 30124})
    wait_service(world, "the port", lambda s: port(s).get("nodePort") == 30124)


# The budget


def evict(world: World, pod: Json) -> str:
    """Ask the API server to evict a pod; empty when it does, else its words."""
    meta = {"name": pod["metadata"]["name"], "namespace": world.namespace}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
    path = f"/api/v1/namespaces/{world.namespace}/pods/{meta['name']}/eviction"
    try:
        world.kubectl("create", "--raw", path, "-f", "-", given=body)
    except AssertionError as refused:
        return str(refused)
    return ""


def budget(world: World) -> Json:
    return (world.child("PodDisruptionBudget") or {}).get("status") or {}


def wait_allowed(world: World, count: int, healthy: int) -> None:
    def seen(status: Json) -> bool:
        return (status.get("disruptionsAllowed"), status.get("currentHealthy")) == (count, healthy)

    wait_for(f"{count} evictions to be allowed", lambda: budget(world), seen, SECONDS, 0.05)


def test_evictions_take_one_pod_at_a_time_and_always_one_that_is_not_ready(world: World) -> None:
    world.operator()
    world.create(replicas=2)
    first, second = world.wait_pods(2)
    assert evict(world, first) == "", "neither is ready: an engine that loads holds up no drain"
    first, second = (pod for pod in world.wait_pods(2) if "deletionTimestamp" not in pod["metadata"])
    world.engine(first)
    world.engine(second)
    wait_allowed(world, 1, 2)
    assert evict(world, first) == ""
    wait_allowed(world, 0, 1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in evict(world, second)
    new = next(pod for pod in world.wait_pods(2) if pod["metadata"]["name"] != second["metadata"]["name"])
    world.engine(new)
    wait_allowed(world, 1, 2)
    assert evict(world, second) == ""


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_budget_is_met_by_one_pod_and_by_none(world: World, replicas: int) -> None:
    world.operator()
    world.create(replicas=3)
    world.engines(3)
    wait_allowed(world, 1, 3)
    world.patch(replicas=replicas)
    for pod in world.wait_pods(replicas):
        assert evict(world, pod) == ""
    assert world.wait_child("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_budget_that_is_not_wanted_goes_and_comes_back(world: World) -> None:
    world.operator()
    world.create()
    pods = [pod["metadata"]["uid"] for pod in world.wait_pods(1)]
    world.wait_child("PodDisruptionBudget")
    world.patch(podDisruptionBudget={"enabled": False})
    wait_gone(world, "PodDisruptionBudget")
    world.patch(podDisruptionBudget={"enabled": True, "maxUnavailable": "50%"})
    assert world.wait_child("PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert [pod["metadata"]["uid"] for pod in world.wait_pods(1)] == pods


# The policy


def test_a_policy_comes_with_the_resource_follows_it_and_goes(world: World) -> None:
    world.operator(POD_LABELS="app.kubernetes.io/name=dsd-operator", MONITORING_PEERS=json.dumps(MONITORING))
    world.create()
    pods = [pod["metadata"]["uid"] for pod in world.wait_pods(1)]
    assert world.child("NetworkPolicy") is None

    world.patch(networkPolicy={"enabled": True})
    operator, clients, monitoring = world.wait_child("NetworkPolicy")["spec"]["ingress"]
    (peer,) = operator["from"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "dsd-system"}
    assert peer["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "dsd-operator"}
    assert clients["from"] == [{"podSelector": {}}]
    assert monitoring["from"] == MONITORING

    world.patch(networkPolicy={"clients": [], "monitoring": []})

    def operator_alone() -> bool:
        return bool(world.wait_child("NetworkPolicy")["spec"]["ingress"] == [operator])

    wait_for("the operator to be alone", operator_alone, bool, SECONDS, 0.05)
    world.patch(networkPolicy=None)
    wait_gone(world, "NetworkPolicy")
    assert [pod["metadata"]["uid"] for pod in world.wait_pods(1)] == pods


def test_a_policy_of_somebody_elses_is_left_alone(world: World) -> None:
    world.operator()
    meta = {"name": NAME, "namespace": world.namespace}
    world.apply(
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": {"podSelector": {}}}
    )
    world.create(networkPolicy={"enabled": True})
    world.engines(1)
    assert "NetworkPolicy" in world.wait_condition("Ready", reason="ForeignObject")["message"]
    world.wait_condition("Available", status="True")
    assert world.wait_child("NetworkPolicy")["spec"]["podSelector"] == {}
