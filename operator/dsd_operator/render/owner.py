"""The owner reference that lets the garbage collector delete children, also while the operator is down."""

from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.api.constants import API_VERSION, KIND
from dsd_operator.render.labels import labels
from dsd_operator.render.names import names_for


def owner_reference(resource: DSDDeployment) -> dict[str, Any]:
    """Controller reference. No blockOwnerDeletion: OpenShift demands rights on finalizers for it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": resource.metadata.name,
        "uid": resource.metadata.uid,
        "controller": True,
    }


def child_metadata(resource: DSDDeployment) -> dict[str, Any]:
    """`metadata` of every child: they share one name and one set of labels, and differ in kind."""
    names = names_for(resource.metadata.name)
    return {
        "name": names.base,
        "namespace": resource.metadata.namespace,
        "labels": labels(names),
        "ownerReferences": [owner_reference(resource)],
    }
