"""Whose object is it? Only what is absent or ours is ever applied."""

from typing import Any

import pytest

from dsd_operator.cluster.ownership import Claim, claim

OURS = {"apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment", "name": "demo", "uid": "new"}
WANTED = {**OURS, "controller": True}
LABEL = {"app.kubernetes.io/managed-by": "dsd-operator"}


def thing(labels: dict[str, str] | None = None, deleted: bool = False, **owner: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "demo"}
    if labels is not None:
        meta["labels"] = labels
    if owner:
        meta["ownerReferences"] = [{**OURS, "controller": True, **owner}]
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"kind": "ConfigMap", "metadata": meta}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (None, Claim.ABSENT),
        (thing(LABEL, uid="new"), Claim.OURS),
        (thing(None, uid="new"), Claim.OURS),  # somebody took the labels off
        (thing(LABEL), Claim.ORPHAN),
        (thing(LABEL, uid="old"), Claim.ORPHAN),  # of an earlier resource of this name
        (thing(LABEL, uid="old", controller=False), Claim.ORPHAN),
        (thing(None), Claim.FOREIGN),
        (thing({}), Claim.FOREIGN),
        (thing({"app.kubernetes.io/managed-by": "Helm"}), Claim.FOREIGN),
        (thing(None, uid="old"), Claim.FOREIGN),
        (thing(LABEL, uid="x", kind="Deployment", apiVersion="apps/v1", name="other"), Claim.FOREIGN),
        (thing(LABEL, uid="x", name="other"), Claim.FOREIGN),
        (thing(LABEL, uid="x", apiVersion="other.io/v1"), Claim.FOREIGN),
        (thing(LABEL, uid="old", apiVersion="dsd-operator.io/v1beta1"), Claim.ORPHAN),
        (thing(LABEL, deleted=True, uid="new"), Claim.LEAVING),
        (thing(LABEL, deleted=True), Claim.LEAVING),
        (thing(None, deleted=True), Claim.FOREIGN),
    ],
)
def test_claim(live: dict[str, Any] | None, expected: Claim) -> None:
    assert claim(live, WANTED) is expected
