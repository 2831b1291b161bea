"""The operators of a cluster, as Deployments and pods: which are responsible for a namespace, which run. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dsd.cluster import Objects
from kubectl_dsd.policies import selects

_WATCHED: Final = "DSD_OPERATOR_WATCH_NAMESPACES"


def responsible(operators: Iterable[Mapping[str, Any]], namespace: str) -> Objects:
    """Those that watch `namespace`, running or not."""
    return [dict(operator) for operator in operators if _watches(operator, namespace)]


def available(operator: Mapping[str, Any]) -> bool:
    """Whether a pod of it is ready."""
    return bool((operator.get("status") or {}).get("availableReplicas"))


def pods_of(operators: Iterable[Mapping[str, Any]], pods: Objects) -> Objects:
    """The pods of these operators."""
    chosen = list(operators)
    return [pod for pod in pods if any(_owns(operator, pod) for operator in chosen)]


def place(operator: Mapping[str, Any]) -> str:
    """Namespace and name."""
    return f"{operator['metadata']['namespace']}/{operator['metadata']['name']}"


def _watches(operator: Mapping[str, Any], namespace: str) -> bool:
    template = ((operator.get("spec") or {}).get("template") or {}).get("spec") or {}
    variables = [v for container in template.get("containers") or () for v in container.get("env") or ()]
    named = next((str(v.get("value") or "") for v in variables if v.get("name") == _WATCHED), "")
    namespaces = {part.strip() for part in named.split(",") if part.strip()}
    return not namespaces or namespace in namespaces


def _owns(operator: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """By namespace and selector: two releases may share a namespace."""
    selector = (operator.get("spec") or {}).get("selector") or {}
    same = operator["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and selects(selector, pod["metadata"].get("labels") or {})
