"""What stands beside the pods: Service, NetworkPolicy, PodDisruptionBudget. None of it touches a pod."""

from typing import Any, Final

import pytest

from dsd_operator.render.context import RenderContext
from dsd_operator.render.extras import unwanted
from dsd_operator.render.neighbours import Neighbours
from dsd_operator.render.plan import plan
from dsd_operator.render.service import url
from tests.unit.resources import CONTEXT, manifests, resource

OPERATOR: Final = {"app.kubernetes.io/name": "dsd-operator", "app.kubernetes.io/instance": "a"}
PROMETHEUS: Final = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
OTHERS: Final = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "clients"}}}


def service(**wanted: Any) -> dict[str, Any]:
    return manifests(resource({"service": wanted}))["Service"]


def policy(of_the_chart: tuple[Any, ...] = (), **wanted: Any) -> dict[str, Any]:
    neighbours = Neighbours("dsd-system", OPERATOR, of_the_chart)
    context = RenderContext(CONTEXT.runtime_image, CONTEXT.revision, neighbours=neighbours)
    made = plan(resource({"networkPolicy": {"enabled": True, **wanted}}), context)
    spec: dict[str, Any] = next(m["spec"] for m in made if m["kind"] == "NetworkPolicy")
    return spec


def budget(**wanted: Any) -> dict[str, Any]:
    spec: dict[str, Any] = manifests(resource({"podDisruptionBudget": wanted}))["PodDisruptionBudget"]["spec"]
    return spec


def pod_labels() -> dict[str, str]:
    labels: dict[str, str] = manifests(resource())["Deployment"]["spec"]["template"]["metadata"]["labels"]
    return labels


# The Service


def test_a_service_leaves_to_kubernetes_what_the_user_does_not_set() -> None:
    spec = service()["spec"]
    assert spec.keys() == {"type", "selector", "ports", "ipFamilyPolicy"}
    assert spec["ports"] == [{"name": "http", "port": 8000, "targetPort": "http", "protocol": "TCP"}]


def test_the_url_follows_the_port_and_the_engine_does_not() -> None:
    wanted = resource({"service": {"port": 80}})
    assert url(wanted) == "http://demo.team-a.svc:80"
    assert service(port=80)["spec"]["ports"][0]["targetPort"] == "http"
    assert manifests(wanted)["Deployment"] == manifests(resource())["Deployment"]


def test_labels_and_annotations_are_added_and_ours_stay() -> None:
    own = service()["metadata"]
    assert "annotations" not in own
    given = service(labels={"team": "a", "app.kubernetes.io/name": "x"}, annotations={"a/b": "c"})["metadata"]
    assert given["labels"] == {**own["labels"], "team": "a"}
    assert given["annotations"] == {"a/b": "c"}


# The NetworkPolicy


def test_without_being_asked_there_is_no_policy() -> None:
    assert "NetworkPolicy" not in manifests(resource())
    assert "NetworkPolicy" in {identity["kind"] for identity in unwanted(resource())}


def test_it_is_about_all_pods_of_the_resource_and_about_what_comes_in() -> None:
    spec = policy()
    assert spec["podSelector"]["matchLabels"].items() <= pod_labels().items()
    assert "app.kubernetes.io/name" not in spec["podSelector"]["matchLabels"], "workers have another one"
    assert spec["policyTypes"] == ["Ingress"]
    assert "egress" not in spec


def test_the_operator_and_the_pods_of_the_namespace_come_in() -> None:
    operator, clients = policy()["ingress"]
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "dsd-system"}}
    assert operator["from"] == [{"namespaceSelector": namespace, "podSelector": {"matchLabels": OPERATOR}}]
    assert clients["from"] == [{"podSelector": {}}]
    assert operator["ports"] == clients["ports"] == [{"port": 8000, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("monitoring", "wanted", "peers"),
    [
        ((), {"clients": [OTHERS]}, [[OTHERS]]),
        ((), {"clients": []}, []),
        ((PROMETHEUS,), {}, [[{"podSelector": {}}], [PROMETHEUS]]),
        ((PROMETHEUS,), {"monitoring": [OTHERS]}, [[{"podSelector": {}}], [OTHERS]]),
        ((PROMETHEUS,), {"monitoring": [], "clients": []}, []),
    ],
)
def test_whom_the_user_names_comes_in_and_no_empty_rule_lets_in_all(
    monitoring: tuple[Any, ...], wanted: Any, peers: list[Any]
) -> None:
    _, *others = policy(monitoring, **wanted)["ingress"]
    assert [rule["from"] for rule in others] == peers


@pytest.mark.parametrize(
    ("nodes", "grouped", "free"), [(1, False, False), (2, False, True), (2, True, True), (1, True, True)]
)
def test_pods_of_groups_reach_each_other_on_every_port_until_the_last_has_gone(
    nodes: int, grouped: bool, free: bool
) -> None:
    context = RenderContext(CONTEXT.runtime_image, CONTEXT.revision, grouped=grouped)
    engine = {"engine.nodes": nodes, "engine.tensorParallelSize": nodes}
    (made,) = (m for m in plan(resource({**engine, "networkPolicy": {"enabled": True}}), context)
               if m["kind"] == "NetworkPolicy")  # fmt: skip
    own = {"from": [{"podSelector": made["spec"]["podSelector"]}]}
    assert (own in made["spec"]["ingress"]) is free
    assert all("ports" in rule for rule in made["spec"]["ingress"] if rule != own)


# The PodDisruptionBudget


def test_a_budget_can_be_met_at_one_replica_and_by_pods_that_do_not_start() -> None:
    spec = budget()
    assert spec["maxUnavailable"] == 1
    assert "minAvailable" not in spec
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert spec["selector"]["matchLabels"].items() <= pod_labels().items()


def test_a_share_of_the_pods_may_go() -> None:
    assert budget(maxUnavailable="25%")["maxUnavailable"] == "25%"


def test_without_a_budget_nothing_else_changes() -> None:
    without = manifests(resource({"podDisruptionBudget": {"enabled": False}}))
    assert "PodDisruptionBudget" not in without
    with_it = manifests(resource())
    with_it.pop("PodDisruptionBudget")
    assert with_it == without
