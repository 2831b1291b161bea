"""Labels of the children. Nothing of the resource's own labels, model ids, images or versions ever becomes one.

`app.kubernetes.io/instance` is left out on purpose: Argo CD's label tracking takes an object that carries an
application's name there for its own, and prunes it.
"""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.render.names import Names

NAME_LABEL: Final = "app.kubernetes.io/name"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
DEPLOYMENT_LABEL: Final = "dsd-operator.io/deployment"
APP_NAME: Final = "dsd-engine"
WORKER_NAME: Final = "dsd-worker"
"""Name label of the pods of an engine over several nodes that have no API server: whoever looks for engines (Service,
PodMonitor, autoscaler) finds those that answer, and no others."""

MANAGER: Final = "dsd-operator"

WATCHED_SELECTOR: Final = f"{MANAGED_BY_LABEL}={MANAGER}"
"""Finds the children of every resource, and all pods."""


def selector(names: Names) -> dict[str, str]:
    """Labels that Deployment and Service select pods by; immutable once the Deployment exists."""
    return {NAME_LABEL: APP_NAME, DEPLOYMENT_LABEL: names.label}


def labels(names: Names) -> dict[str, str]:
    """Labels of every child and of the pods."""
    return {**selector(names), MANAGED_BY_LABEL: MANAGER}


def worker_labels(names: Names) -> dict[str, str]:
    """Labels of the workers of an engine over several nodes."""
    return {**labels(names), NAME_LABEL: WORKER_NAME}


def all_pods(names: Names) -> dict[str, str]:
    """Labels of all pods of a resource, workers included."""
    return {DEPLOYMENT_LABEL: names.label, MANAGED_BY_LABEL: MANAGER}


def is_worker(pod: Mapping[str, Any]) -> bool:
    """Whether a pod of ours has no API server."""
    return bool((pod["metadata"].get("labels") or {}).get(NAME_LABEL) == WORKER_NAME)


def joined(labels: Mapping[str, str]) -> str:
    """Labels as a list call takes them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def selector_string(names: Names) -> str:
    """The selector in the form that /scale and list calls take."""
    return joined(selector(names))
