"""NetworkPolicies over plain dicts: which of them guard a pod's traffic, and whether they let a peer in. Pure.

The semantics are those of networking.k8s.io/v1: a policy without `policyTypes` is about incoming traffic; a pod that
any such policy selects takes only what one of them allows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]


def ingress_policies(policies: Sequence[Object], pod: Object) -> list[str]:
    """Names of the policies that restrict what may come into `pod`."""
    return sorted(str(policy["metadata"]["name"]) for policy in restricting(policies, pod))


def egress_policies(policies: Sequence[Object], pod: Object) -> list[str]:
    """Names of the policies that restrict what `pod` may reach."""
    return sorted(str(policy["metadata"]["name"]) for policy in restricting(policies, pod, "Egress"))


def restricting(policies: Sequence[Object], pod: Object, direction: str = "Ingress") -> list[Object]:
    """The policies of the pod's namespace that select it for traffic in this direction."""
    namespace = pod["metadata"].get("namespace")
    labels = pod["metadata"].get("labels") or {}
    return [
        policy
        for policy in policies
        if policy["metadata"].get("namespace") == namespace
        and direction in _directions(policy.get("spec") or {})
        and selects((policy.get("spec") or {}).get("podSelector") or {}, labels)
    ]


def _directions(spec: Object) -> list[str]:
    """Where nothing is said: incoming, and outgoing too if there are rules for it."""
    return list(spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def lets_in(
    policies: Sequence[Object], pod: Object, peer: Object, namespace_labels: Mapping[str, str], port: int
) -> bool:
    """Whether a pod, `peer`, may reach a TCP port of `pod`, as far as selectors say; address blocks count as a yes."""
    guards = restricting(policies, pod)
    rules = [rule for policy in guards for rule in (policy.get("spec") or {}).get("ingress") or ()]
    return not guards or any(_opens(rule, pod, port) and _allows(rule, pod, peer, namespace_labels) for rule in rules)


def _opens(rule: Object, pod: Object, port: int) -> bool:
    """Whether a rule is about the port; one that names none is about all."""
    entries = rule.get("ports") or ()
    return not entries or any(_is_in(entry, pod, port) for entry in entries)


def _is_in(entry: Object, pod: Object, port: int) -> bool:
    if entry.get("protocol", "TCP") != "TCP":
        return False
    first = entry.get("port")
    if isinstance(first, int):
        return first <= port <= int(entry.get("endPort", first))
    return first is None or (first, port) in _named_ports(pod)


def _named_ports(pod: Object) -> set[tuple[str, int]]:
    containers = (pod.get("spec") or {}).get("containers") or ()
    ports = (entry for container in containers for entry in container.get("ports") or ())
    return {(str(p.get("name")), int(p["containerPort"])) for p in ports if p.get("protocol", "TCP") == "TCP"}


def _allows(rule: Object, pod: Object, peer: Object, namespace_labels: Mapping[str, str]) -> bool:
    sources = rule.get("from")
    return not sources or any(_matches(source, pod, peer, namespace_labels) for source in sources)


def _matches(source: Object, pod: Object, peer: Object, namespace_labels: Mapping[str, str]) -> bool:
    if "ipBlock" in source:
        return True
    if "namespaceSelector" in source:
        right_namespace = selects(source["namespaceSelector"] or {}, namespace_labels)
    else:
        right_namespace = peer["metadata"].get("namespace") == pod["metadata"].get("namespace")
    return right_namespace and selects(source.get("podSelector") or {}, peer["metadata"].get("labels") or {})


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector fits; an empty one fits everything."""
    wanted = selector.get("matchLabels") or {}
    if not wanted.items() <= dict(labels).items():
        return False
    return all(_fits(expression, labels) for expression in selector.get("matchExpressions") or ())


def _fits(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
