"""From models to a structural schema."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field

from dsd_operator.api import crdgen
from dsd_operator.api.cel import Rule, first_of, one_of, quote, raw
from dsd_operator.api.common import ApiModel, defaults_of, field_extra


class Inner(ApiModel):
    """Words of the model."""

    cel_rules = (Rule("self.count > 0", "too few", field_path=".count"),)

    count: int = Field(default=2, ge=0, le=9, description="How many.")


class Outer(ApiModel):
    """Outer."""

    inner: Inner | None = Field(default=None, description="Words of the field.")
    share: float = Field(gt=0, le=1)
    big: int
    tags: tuple[str, ...] = Field(
        default=(), max_length=3, json_schema_extra=field_extra(Rule("true", "never"), list_type="set")
    )
    filled: Inner = Field(default_factory=Inner, json_schema_extra=defaults_of(Inner))


def _schema() -> dict[str, Any]:
    return crdgen.structural(Outer)


def _everywhere(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _everywhere(value)


def test_optional_references_become_plain_objects_and_the_fields_words_win() -> None:
    inner = _schema()["properties"]["inner"]
    assert inner["type"] == "object"
    assert inner["description"] == "Words of the field."
    assert inner["properties"]["count"] == {
        "description": "How many.", "type": "integer", "format": "int32", "default": 2, "maximum": 9, "minimum": 0,
    }  # fmt: skip
    assert inner["x-kubernetes-validations"] == [
        {"rule": "self.count > 0", "message": "too few", "fieldPath": ".count"}
    ]
    assert "default" not in inner


def test_numbers_are_spelt_as_kubernetes_does() -> None:
    properties = _schema()["properties"]
    assert properties["share"] == {"type": "number", "exclusiveMinimum": True, "maximum": 1, "minimum": 0}
    assert properties["big"] == {"type": "integer", "format": "int64"}


def test_lists_carry_rules_and_extensions() -> None:
    tags = _schema()["properties"]["tags"]
    assert (tags["type"], tags["items"], tags["maxItems"]) == ("array", {"type": "string"}, 3)
    assert tags["x-kubernetes-list-type"] == "set"
    assert tags["x-kubernetes-validations"] == [{"rule": "true", "message": "never"}]


def test_objects_are_filled_in_with_all_their_scalar_defaults() -> None:
    assert _schema()["properties"]["filled"]["default"] == {"count": 2}


@pytest.mark.parametrize("word", ["$ref", "$defs", "title", "const"])
def test_nothing_is_left_that_kubernetes_does_not_know(word: str) -> None:
    root = crdgen.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert not [s for s in _everywhere(root) if word in s]


def test_messages_are_short_single_lines() -> None:
    """The API server refuses line breaks in a message."""
    root = crdgen.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rules = [rule for s in _everywhere(root) for rule in s.get("x-kubernetes-validations", ())]
    assert rules
    assert all("\n" not in rule["message"] and 10 < len(rule["message"]) < 300 for rule in rules)


FUNCTIONS_OF_1_29 = {
    "has", "size", "string", "type", "all", "exists", "filter", "map", "matches", "startsWith", "contains",
    "lowerAscii", "isSorted", "isQuantity", "quantity", "isInteger", "isGreaterThan", "compareTo",
}  # fmt: skip
"""Those of them that we use. Quantities came with 1.28, messageExpression with 1.27, fieldPath with 1.28."""


def test_rules_use_functions_of_kubernetes_1_29_only() -> None:
    root = crdgen.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rules = [rule for s in _everywhere(root) for rule in s.get("x-kubernetes-validations", ())]
    code = " ".join(rule["rule"] + " " + rule.get("messageExpression", "") for rule in rules)
    without_literals = re.sub(r'''r""".*?"""|"(?:[^"\\]|\\.)*"|'[^']*\'''', "", code)
    assert set(re.findall(r"([A-Za-z_]+)\(", without_literals)) - {"in"} <= FUNCTIONS_OF_1_29


def test_subresources_and_names() -> None:
    spec = crdgen.crd()["spec"]
    assert spec["names"]["shortNames"] == ["dsd"]
    assert spec["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_cel_literals() -> None:
    assert quote('it\'s "so"') == '"it\'s \\"so\\""'
    assert raw(r"^a\s'") == 'r"""^a\\s\'"""'
    assert one_of("self.x", ("a", "b")) == 'self.x in ["a", "b"]'
    assert first_of([("c1", "one"), ("c2", "two")], "three") == 'c1 ? "one" : c2 ? "two" : "three"'
