"""Quantities as users write them: what is wrong with them, in words, and the spelling that the API takes."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsd_operator.api.quantity import parse
from dsd_runtime.schedule import Problem


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
