"""Labels of the children. Nothing of the resource's own labels, model ids, images or versions ever becomes one.

`app.kubernetes.io/instance` is left out on purpose: Argo CD's label tracking takes an object that carries an
application's name there for its own, and prunes it.
"""

from typing import Final

from dsd_operator.render.names import Names

NAME_LABEL: Final = "app.kubernetes.io/name"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
DEPLOYMENT_LABEL: Final = "dsd-operator.io/deployment"
APP_NAME: Final = "dsd-engine"
MANAGER: Final = "dsd-operator"

MANAGED_SELECTOR: Final = f"{NAME_LABEL}={APP_NAME},{MANAGED_BY_LABEL}={MANAGER}"
"""Finds the children of every resource."""


def selector(names: Names) -> dict[str, str]:
    """Labels that Deployment and Service select pods by; immutable once the Deployment exists."""
    return {NAME_LABEL: APP_NAME, DEPLOYMENT_LABEL: names.label}


def labels(names: Names) -> dict[str, str]:
    """Labels of every child and of the pods."""
    return {**selector(names), MANAGED_BY_LABEL: MANAGER}


def selector_string(names: Names) -> str:
    """The selector in the form that /scale and list calls take."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector(names).items()))
