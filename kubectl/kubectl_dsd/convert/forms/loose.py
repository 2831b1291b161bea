"""Values of a YAML file as the type that is wanted there: a file may hold anything anywhere."""

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """`value` with its keys as texts, or an empty mapping where it is none."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """`value`, or an empty list where it is none."""
    return value if isinstance(value, list) else []


def mappings(value: Any) -> list[dict[str, Any]]:
    """The mappings in a list."""
    return [mapping(item) for item in items(value) if isinstance(item, Mapping)]


def scalar(value: Any) -> str:
    """A YAML scalar as the text that a program gets."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def name(value: Any) -> str | None:
    """A name; None where there is none."""
    return scalar(value) or None if isinstance(value, str | int | float) else None


def words(value: Any) -> list[str]:
    """A list of arguments; a text is one."""
    return [scalar(item) for item in items(value)] if not isinstance(value, str) else [value]
