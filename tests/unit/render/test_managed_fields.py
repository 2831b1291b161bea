"""The part of an object that a field manager applied."""

from typing import Any

from dsd_operator.render.managed_fields import applied_by


def thing(fields: dict[str, Any], **content: Any) -> dict[str, Any]:
    entries = [
        {"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "us", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
        {"manager": "us", "operation": "Apply", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "us", "operation": "Apply", "fieldsV1": fields},
    ]
    return {"metadata": {"managedFields": entries}, **content}


def test_fields_of_others_and_defaults_are_left_out() -> None:
    found = applied_by("us", thing({"f:spec": {"f:a": {}}}, spec={"a": 1, "replicas": 2, "paused": True}, kind="X"))
    assert found == {"spec": {"a": 1}}


def test_items_of_a_list_are_found_by_their_keys() -> None:
    fields: dict[str, Any] = {
        "f:containers": {
            'k:{"name":"engine"}': {
                ".": {}, "f:name": {}, "f:image": {},
                "f:ports": {'k:{"containerPort":8000,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }
        }
    }  # fmt: skip
    ports = [{"containerPort": 8000, "protocol": "TCP"}, {"containerPort": 8000, "protocol": "UDP"}]
    engine = {"name": "engine", "image": "i", "ports": ports, "terminationMessagePath": "/dev/termination-log"}
    found = applied_by("us", thing(fields, containers=[{"name": "proxy", "image": "p"}, engine]))
    assert found == {"containers": [{"name": "engine", "image": "i", "ports": [{"containerPort": 8000}]}]}


def test_items_of_a_set_are_found_by_their_value() -> None:
    assert applied_by("us", thing({"f:finalizers": {'v:"b"': {}}}, finalizers=["a", "b"])) == {"finalizers": ["b"]}


def test_what_has_nothing_below_it_is_owned_whole() -> None:
    content = {"args": ["a", "b"], "emptyDir": {}, "limits": {"cpu": "1"}}
    assert applied_by("us", thing({f"f:{name}": {} for name in content}, **content)) == content


def test_a_field_that_is_gone_is_gone() -> None:
    assert applied_by("us", thing({"f:spec": {"f:a": {}, "f:b": {}}}, spec={"a": 1})) == {"spec": {"a": 1}}


def test_nothing_was_applied() -> None:
    assert applied_by("nobody", thing({"f:a": {}}, a=1)) == {}
    assert applied_by("us", {"metadata": {}}) == {}
