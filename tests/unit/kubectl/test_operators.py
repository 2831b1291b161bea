"""With several releases those operators count that watch the resource's namespace."""

from typing import Any

from kubectl_dsd.explain import check_operator, check_schedule
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.reach import Asked

Json = dict[str, Any]
NAME = "app.kubernetes.io/name"


def operator(namespace: str, watch: str = "", *, runs: bool = True) -> Json:
    """A release's Deployment."""
    env = [{"name": "DSD_OPERATOR_WATCH_NAMESPACES", "value": watch}]
    return {
        "metadata": {"namespace": namespace, "name": f"{namespace}-operator"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/instance": namespace}},
            "template": {"spec": {"containers": [{"env": env}]}},
        },
        "status": {"availableReplicas": int(runs)},
    }


def pod_of(release: Json, message: str = "") -> Json:
    """A pod of it, which waits with this message where there is one."""
    meta = {
        "namespace": release["metadata"]["namespace"],
        "name": f"{release['metadata']['name']}-x",
        "labels": {"app.kubernetes.io/instance": release["metadata"]["namespace"], NAME: "dsd-operator"},
    }
    waiting = [{"name": "operator", "state": {"waiting": {"reason": "ErrImagePull", "message": message}}}]
    return {"metadata": meta, "status": {"phase": "Pending", "containerStatuses": waiting if message else []}}


def facts(*operators: Json, current: bool = False, **more: Any) -> Facts:
    """About a deployment in the namespace team, whose spec is old."""
    meta = {"namespace": "team", "name": "demo", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}
    deployment = {"metadata": meta, "spec": {}, "status": {"observedGeneration": 2 if current else 1}}
    return Facts(deployment, operators=list(operators), **more)


def reasons(found: Facts) -> list[str]:
    """Of the findings about operators."""
    return [finding.reason for finding in check_operator.check(found)]


def test_one_that_runs_elsewhere_does_not_hide_that_ours_is_down() -> None:
    down, other = operator("a", "team", runs=False), operator("b", "elsewhere")
    pods = [pod_of(other, "that of b"), pod_of(down, "that of a")]

    (finding,) = check_operator.check(facts(other, down, operator_pods=pods))

    assert finding.reason == "OperatorNotRunning"
    assert finding.objects == ("Deployment a/a-operator",)
    assert "deployment/a-operator -n a" in finding.fix
    assert [said for said in finding.said if "that of a" in said]
    assert not [said for said in finding.said if "that of b" in said]


def test_one_that_is_down_elsewhere_is_no_trouble_of_ours() -> None:
    down, ours = operator("a", "elsewhere", runs=False), operator("b", "x, team")

    assert reasons(facts(down, ours, current=True)) == []
    (finding,) = check_operator.check(facts(down, ours))
    assert finding.reason == "OperatorSilent"
    assert "deployment/b-operator -n b" in finding.fix


def test_none_that_watches_here_is_told_whether_they_run_or_not() -> None:
    (finding,) = check_operator.check(facts(operator("a", "x"), operator("b", "y", runs=False)))

    assert finding.reason == "NamespaceNotWatched"
    assert "a/a-operator, b/b-operator" in finding.cause


def test_two_for_one_namespace() -> None:
    a, b, c = operator("a"), operator("b", "team"), operator("c", "elsewhere")

    (finding,) = check_operator.check(facts(a, b, c, current=True))

    assert finding.reason == "TwoOperators"
    assert "c/" not in finding.cause
    assert reasons(facts(a, operator("b", "team", runs=False), current=True)) == []


def test_a_policy_lets_in_the_operator_that_is_responsible() -> None:
    """By the labels of its own namespace, not of the first release's."""
    other, ours = operator("a", "elsewhere"), operator("b", "team")
    engine = {
        "metadata": {"namespace": "team", "name": "demo-x", "labels": {"app": "e"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    source = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}
    policy = {
        "metadata": {"namespace": "team", "name": "shut"},
        "spec": {"podSelector": {}, "ingress": [{"from": [source]}]},
    }
    found = facts(
        other, ours, current=True, policies=[policy], operator_pods=[pod_of(other), pod_of(ours)],
        pods=[PodView(engine, Asked(engine), True)],
        operator_namespaces={"b": {"kubernetes.io/metadata.name": "b"}},
    )  # fmt: skip
    found.status["schedule"] = {"outOfSync": [{"pod": "demo-x", "reason": "PodUnreachable"}]}  # type: ignore[index]

    assert ["NetworkPolicy" in f.cause for f in check_schedule.check(found) if f.reason == "PodUnreachable"] == [False]
    source["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] = "a"
    (finding,) = [f for f in check_schedule.check(found) if f.reason == "PodUnreachable"]
    assert "blocked by the NetworkPolicy shut" in finding.cause
    assert "kubernetes.io/metadata.name=b " in finding.fix
