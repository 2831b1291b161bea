"""Who would set a schedule back is found in the resource's metadata."""

from typing import Any

import pytest

from kubectl_dsd.schedule.managers import owners, warnings


def resource(*entries: tuple[str, str, str], **meta: Any) -> dict[str, Any]:
    """A resource with these (manager, operation, field of the spec) entries."""
    managed = [
        {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {field: {}}}}
        for manager, operation, field in entries
    ]
    return {"metadata": {"name": "demo", "managedFields": managed, **meta}}


def test_only_owners_of_the_schedule_count() -> None:
    found = resource(("a", "Apply", "f:schedule"), ("b", "Apply", "f:replicas"), ("c", "Update", "f:smoothing"))
    assert owners(found["metadata"]) == [("a", "Apply"), ("c", "Update")]


def test_we_do_not_warn_of_ourselves() -> None:
    assert warnings(resource(("kubectl-dsd", "Update", "f:schedule"), ("kubectl-edit", "Update", "f:schedule"))) == []


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (resource(("argocd-controller", "Apply", "f:schedule")), "Argo CD (field manager argocd-controller)"),
        (resource(("kustomize-controller", "Apply", "f:schedule")), "Flux (field manager kustomize-controller)"),
        (resource(("helm-controller", "Update", "f:schedule")), "where its drift detection is on"),
        (resource(("fleetagent", "Update", "f:schedule")), "where correctDrift is on"),
        (resource(("helm", "Update", "f:schedule")), "an upgrade that changes it sets it anew"),
        (resource(("helm", "Apply", "f:schedule")), "ends in a conflict, and with force (`helm upgrade --force-"),
        (resource(("me", "Apply", "f:schedule")), "field manager me owns"),
        (resource(("me", "Apply", "f:schedule")), "conflict, and with force (`kubectl apply --server-side --force-"),
        (resource(("me", "Apply", "f:smoothing")), "its next apply ends in a conflict"),
        (resource(annotations={"argocd.argoproj.io/tracking-id": "x"}), "Argo CD manages this resource"),
        (resource(labels={"kustomize.toolkit.fluxcd.io/name": "x"}), "Flux manages this resource"),
        (
            resource(annotations={"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"schedule":[]}}'}),
            "came with `kubectl apply`",
        ),
    ],
)
def test_each_is_named_once(given: dict[str, Any], word: str) -> None:
    found = warnings(given)
    assert len(found) == 1
    assert word in found[0]
