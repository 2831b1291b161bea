"""What all API models share: the frozen camelCase base, CEL rules, and the scalar types with their bounds.

The models carry everything the CRD says (descriptions, bounds, CEL rules); `crdgen` only translates. Bounds on lengths
are not only hygiene: the API server estimates the cost of a CEL rule from them.
"""

from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from dsd_operator.api.cel import Rule

MAX_INT32: Final = 2**31 - 1


def _add_rules(schema: dict[str, Any], model: type[Any]) -> None:
    if model.cel_rules:
        schema["x-kubernetes-validations"] = [rule.dump() for rule in model.cel_rules]


class ApiModel(BaseModel):
    """Base of the spec: frozen, camelCase, strict.

    Unknown fields are ignored: the API server prunes them, and while an upgrade has brought a newer CRD but not yet the
    newer operator, a field that is not known yet must not turn every resource invalid.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        json_schema_extra=_add_rules,
    )

    cel_rules: ClassVar[tuple[Rule, ...]] = ()
    """Rules over this object, `self` being the object."""


def field_extra(*rules: Rule, **extensions: Any) -> dict[str, Any]:
    """`json_schema_extra` with CEL rules over one field, and Kubernetes extensions: `list_type="map"` becomes
    `x-kubernetes-list-type: map`."""
    extra = {f"x-kubernetes-{name.replace('_', '-')}": value for name, value in extensions.items()}
    return extra | ({"x-kubernetes-validations": [rule.dump() for rule in rules]} if rules else {})


EMPTIED: Final[dict[str, bool]] = {"nullable": True}
"""Schema of an object that may be emptied: server-side apply of `{}` over a filled one makes a null of it.

Not for objects that a CEL rule looks into from outside (`has` is true for a null); those get `{}` as their default,
which takes the place of a null.
"""


def defaults_of(model: type[ApiModel]) -> dict[str, Any]:
    """`json_schema_extra` that makes the API server fill in an object that is left out, with its scalar defaults."""
    values = model().model_dump(mode="json", by_alias=True)
    return {"default": {k: v for k, v in values.items() if isinstance(v, str | int | float)}}


PositiveInt32 = Annotated[int, Field(ge=1, le=MAX_INT32)]

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""Name of another object in the same namespace (DNS-1123 subdomain)."""

QUANTITY_SCHEMA: Final = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 64,
}

Quantity = Annotated[int | float | str, WithJsonSchema(QUANTITY_SCHEMA)]
"""A Kubernetes quantity as the user wrote it; compared by value, passed on in its own spelling."""

CIDR_PATTERN: Final = "^[0-9a-fA-F.:]+/[0-9]{1,3}$"

Cidr = Annotated[str, Field(min_length=3, max_length=49, pattern=CIDR_PATTERN)]
"""A range of addresses, as 10.0.0.0/8 or fd00::/8; the API server refuses what only looks like one."""

QUANTITY_HINT: Final = "use a number with a suffix, such as 500m, 0.5, 16Gi or 16G"


def is_quantity(value: str) -> str:
    """CEL: `value`, an integer or a string, is a quantity."""
    return f"(type({value}) != string || isQuantity({value}))"
