"""The owner reference that lets the garbage collector delete children, also while the operator is down."""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.constants import API_VERSION, GROUP, KIND
from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.render.labels import labels
from dsd_operator.render.names import names_for

ENVELOPE: Final = f"{GROUP}/envelope"
"""Label of a workload with the hash of the envelope that its pods are made for. Not on the pods, and no annotation: a
Deployment's generation counts changes of its annotations, and it copies them to its ReplicaSets."""


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


def with_envelope(metadata: Mapping[str, Any], resource: DSDDeployment) -> dict[str, Any]:
    """`metadata` of a workload: it says which envelope its pods are made for, should the history be lost."""
    return {**metadata, "labels": {**metadata["labels"], ENVELOPE: envelope_hash(envelope(resource.spec))}}
