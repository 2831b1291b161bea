"""Kubernetes quantities by value, so that `1024Mi` and `1Gi` are the same amount. Pure.

`render.quantity` judges what users wrote with them; `by_value` is what manifests and envelopes are compared by.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_BINARY: Final = {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_SMALL: Final = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_SUFFIXES: Final = {**_BINARY, **_DECIMAL, **_SMALL}
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]))?")

_HINT: Final = "use a number with a suffix such as 500m, 0.5, 16Gi or 16G"

_AMOUNTS: Final = frozenset({"requests", "limits"})
_AMOUNT: Final = frozenset({"sizeLimit"})


def parse(value: object) -> Decimal:
    """The amount; raises ValueError with a hint where Kubernetes would refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a quantity; {_HINT}")
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{str(value)!r} is not a quantity; {_HINT}")
    number, exponent, suffix = match.groups()
    try:
        return Decimal(number + (exponent or "")) * _SUFFIXES[suffix or ""]
    except InvalidOperation as error:
        raise ValueError(f"{str(value)!r} is out of range; {_HINT}") from error


def canonical(value: object) -> str:
    """One spelling per amount, for comparing; what is no quantity stays as it is."""
    try:
        return format(parse(value).normalize(), "f")
    except ValueError:
        return str(value)


def by_value(value: Any, key: str = "") -> Any:
    """A copy of JSON-like data in which every amount that stands under a field for amounts has its one spelling."""
    if isinstance(value, Mapping):
        if key in _AMOUNTS:
            return {name: canonical(amount) for name, amount in value.items()}
        return {name: by_value(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [by_value(item) for item in value]
    return canonical(value) if key in _AMOUNT else value
