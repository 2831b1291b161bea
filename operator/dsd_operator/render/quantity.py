"""Kubernetes quantities: by value, so that `1024Mi` and `1Gi` are the same, and with hints for what is refused."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from dsd_runtime.schedule import Problem

_BINARY: Final = {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_SMALL: Final = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_SUFFIXES: Final = {**_BINARY, **_DECIMAL, **_SMALL}
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]))?")

_HINT: Final = "use a number with a suffix such as 500m, 0.5, 16Gi or 16G"


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


def text(value: object) -> object:
    """`value` as the string that the API takes everywhere (users may leave 4 or 0.5 unquoted)."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def resource_problems(resources: Mapping[str, Any], path: str) -> list[Problem]:
    """Everything wrong with a container's `resources`, in words; `path` is where they stand."""
    problems = []
    for section in ("requests", "limits"):
        amounts = resources.get(section)
        if amounts is not None and not isinstance(amounts, Mapping):
            problems.append(Problem(f"{path}.{section}", "must be a map of resource names to quantities"))
        elif amounts is not None:
            problems += _amount_problems(amounts, f"{path}.{section}")
    return problems


def _amount_problems(amounts: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name, value in amounts.items():
        try:
            amount = parse(value)
        except ValueError as error:
            yield Problem(f"{path}.{name}", str(error))
            continue
        if amount < 0:
            yield Problem(f"{path}.{name}", f"{value} is negative")
        elif "/" in name and amount != amount.to_integral_value():
            yield Problem(f"{path}.{name}", f"{value} is not a whole number; {name} counts whole devices")
