"""Owners of the schedule before and after a profile, in managedFields as API servers write them."""

from typing import Any

from kubectl_dsd.profile.ownership import given_back, last_change_by, schedule_owners


def entry(manager: str, *fields: str, operation: str = "Apply", time: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """An entry that owns these fields of the spec."""
    spec: dict[str, Any] = {f"f:{field}": {} for field in fields}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "dsd-operator.io/v1alpha1",
        "time": time,
        "fieldsV1": {"f:spec": spec} if spec else {"f:metadata": {"f:labels": {}}},
    }


def resource(*entries: dict[str, Any]) -> dict[str, Any]:
    """An object with these entries."""
    return {"metadata": {"name": "demo", "managedFields": list(entries)}}


OURS = entry("kubectl-dsd", "schedule", operation="Update", time="2026-01-01T00:01:00Z")


def test_the_old_owner_owns_it_again_and_we_do_not() -> None:
    original = resource(entry("flux", "schedule", "replicas"), entry("other", "model"))
    present = resource(entry("flux", "replicas"), entry("other", "model"), OURS)

    fields = given_back(present, original)

    assert fields == original["metadata"]["managedFields"]


def test_an_owner_of_nothing_else_comes_back() -> None:
    original = resource(entry("flux", "schedule"))

    fields = given_back(resource(OURS), original)

    assert fields == original["metadata"]["managedFields"]


def test_what_we_owned_before_we_own_after() -> None:
    original = resource(entry("kubectl-dsd", "schedule", operation="Update"))

    assert given_back(resource(OURS), original) is None


def test_what_else_we_own_stays_ours() -> None:
    original = resource(entry("flux", "schedule"), entry("kubectl-dsd", "smoothing", operation="Update"))
    present = resource(entry("kubectl-dsd", "smoothing", "schedule", operation="Update"))

    fields = given_back(present, original)

    assert fields is not None
    assert {(e["manager"], *e["fieldsV1"]["f:spec"]) for e in fields} == {
        ("kubectl-dsd", "f:smoothing"),
        ("flux", "f:schedule"),
    }
    assert schedule_owners(present), "the input must not change"


def test_an_object_without_managed_fields_is_left_alone() -> None:
    assert given_back({"metadata": {}}, {"metadata": {}}) is None


def test_who_changed_it_last() -> None:
    assert last_change_by(resource(OURS, entry("flux", "schedule"))) == "kubectl-dsd"
    assert last_change_by(resource(OURS, entry("flux", "schedule", time="2026-01-01T00:01:00Z"))) == "flux"
    assert last_change_by(resource(entry("x", "model"))) == "somebody"
