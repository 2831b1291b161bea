"""NetworkPolicies: which guard a pod, and whom they let in."""

from typing import Any

import pytest

from kubectl_dsd.policies import egress_policies, ingress_policies, lets_in

POD: Any = {"metadata": {"name": "p", "namespace": "ns", "labels": {"app": "x", "tier": "gpu"}}}
PEER: Any = {"metadata": {"name": "o", "namespace": "system", "labels": {"app": "operator"}}}
LABELS = {"kubernetes.io/metadata.name": "system"}


def policy(selector: Any, ingress: Any = None, kinds: Any = None, namespace: str = "ns") -> Any:
    """A policy."""
    spec = {"podSelector": selector, "ingress": ingress, **({"policyTypes": kinds} if kinds else {})}
    return {"metadata": {"name": "shut", "namespace": namespace}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "guards"),
    [
        (policy({}), True),
        (policy({"matchLabels": {"app": "x"}}), True),
        (policy({"matchLabels": {"app": "y"}}), False),
        (policy({}, kinds=["Egress"]), False),
        (policy({}, namespace="other"), False),
        (policy({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gpu"]}]}), True),
        (policy({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gpu"]}]}), False),
        (policy({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), True),
        (policy({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), False),
    ],
)
def test_which_policies_guard_a_pod(given: Any, guards: bool) -> None:
    assert ingress_policies([given], POD) == (["shut"] if guards else [])


@pytest.mark.parametrize(
    ("ingress", "in_"),
    [
        (None, False),
        ([], False),
        ([{}], True),
        ([{"from": []}], True),
        ([{"from": [{"podSelector": {}}]}], False),
        ([{"from": [{"namespaceSelector": {"matchLabels": LABELS}}]}], True),
        ([{"from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "operator"}}}]}], True),
        ([{"from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "other"}}}]}], False),
        ([{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}], True),
    ],
)
def test_whom_a_policy_lets_in(ingress: Any, in_: bool) -> None:
    assert lets_in([policy({}, ingress)], POD, PEER, LABELS, 8000) is in_


@pytest.mark.parametrize(
    ("ports", "in_"),
    [
        ([], True),
        ([{"port": 8000}], True),
        ([{"port": 8000, "protocol": "TCP"}], True),
        ([{"port": 8000, "protocol": "UDP"}], False),
        ([{"protocol": "TCP"}], True),
        ([{"port": 9090}], False),
        ([{"port": 9090}, {"port": 8000}], True),
        ([{"port": 7000, "endPort": 8000}], True),
        ([{"port": 7000, "endPort": 7999}], False),
        ([{"port": "http"}], True),
        ([{"port": "metrics"}], False),
        ([{"port": "absent"}], False),
    ],
)
def test_a_rule_is_about_its_ports(ports: Any, in_: bool) -> None:
    named = [{"name": "http", "containerPort": 8000}, {"name": "metrics", "containerPort": 9090}]
    pod = {**POD, "spec": {"containers": [{"name": "engine", "ports": named}, {"name": "other"}]}}
    everybody = {"from": [{"namespaceSelector": {}}], "ports": ports}
    assert lets_in([policy({}, [everybody])], pod, PEER, LABELS, 8000) is in_


def test_one_that_allows_is_enough() -> None:
    assert lets_in([policy({}), policy({}, [{}])], POD, PEER, LABELS, 8000)
    assert lets_in([], POD, PEER, LABELS, 8000)


@pytest.mark.parametrize(
    ("spec", "guards"),
    [
        ({"podSelector": {}}, False),
        ({"podSelector": {}, "egress": [{}]}, True),
        ({"podSelector": {}, "policyTypes": ["Egress"]}, True),
        ({"podSelector": {}, "policyTypes": ["Ingress"], "egress": [{}]}, False),
    ],
)
def test_which_policies_guard_what_a_pod_may_reach(spec: Any, guards: bool) -> None:
    given = {"metadata": {"name": "shut", "namespace": "ns"}, "spec": spec}
    assert egress_policies([given], POD) == (["shut"] if guards else [])
