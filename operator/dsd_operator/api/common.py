"""What all API models share: the frozen camelCase base, CEL rules, and the scalar types with their bounds.

The models carry everything the CRD says (descriptions, bounds, CEL rules); `crdgen` only translates. Bounds on lengths
are not only hygiene: the API server estimates the cost of a CEL rule from them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_INT32: Final = 2**31 - 1


@dataclass(frozen=True)
class Rule:
    """One CEL rule (`x-kubernetes-validations`): `rule` must hold, else `message` tells the user what to do.

    `message_expression` builds the message from the value; `message` is then what is shown when that fails.
    `field_path` moves the error from the object that carries the rule to one of its fields (`.model`).
    """

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None

    def dump(self) -> dict[str, str]:
        """As the CRD spells it."""
        optional = {"messageExpression": self.message_expression, "fieldPath": self.field_path}
        return {"rule": self.rule, "message": self.message, **{k: v for k, v in optional.items() if v is not None}}


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
    )

    cel_rules: ClassVar[tuple[Rule, ...]] = ()
    """Rules over this object, `self` being the object."""


def field_extra(**extensions: Any) -> dict[str, Any]:
    """`json_schema_extra` with Kubernetes extensions: `list_type="map"` becomes `x-kubernetes-list-type: map`."""
    return {f"x-kubernetes-{name.replace('_', '-')}": value for name, value in extensions.items()}


PositiveInt32 = Annotated[int, Field(ge=1, le=MAX_INT32)]

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""Name of another object in the same namespace (DNS-1123 subdomain)."""

Quantity = int | float | str
"""A Kubernetes quantity as the user wrote it; compared by value, passed on in its own spelling."""
