"""Quantities by value, and the digest that rests on it."""

from typing import Any

import pytest

from dsd_operator.api.quantity import canonical, parse
from dsd_operator.render.plan import digest
from dsd_operator.render.preflight import envelope_problems
from tests.unit.resources import engine, manifests, resource

EQUAL = [
    ("1024Mi", "1Gi"), ("1000m", "1"), ("1", 1), ("0.5", 0.5), ("500m", 0.5), ("1k", 1000),
    ("0.1", "100m"), ("1E3", "1000"), ("2.0", "2"), ("1.5m", "1500u"),
]  # fmt: skip
DIFFERENT = [("1G", "1Gi"), ("400m", "400M"), ("1", "1k"), ("1.5m", "2m")]
REFUSED = ["16GB", "1e3Mi", "", "Gi", "1 Gi", "one", "1KiB", "0x10", "1e", "++1"]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_one_amount_in_two_spellings(one: object, other: object) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_amounts(one: object, other: object) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("value", [*REFUSED, True, None, [], {}])
def test_what_is_no_quantity_is_refused_with_a_hint(value: object) -> None:
    with pytest.raises(ValueError, match="use a number with a suffix"):
        parse(value)


def limits(**amounts: Any) -> dict[str, Any]:
    return {"resources": {"limits": amounts}}


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_an_edit_to_an_equal_amount_is_no_change(one: object, other: object) -> None:
    before, after = (manifests(resource(limits(cpu=value)))["Deployment"] for value in (one, other))
    assert digest(before) == digest(after)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_an_edit_to_another_amount_is_a_change(one: object, other: object) -> None:
    before, after = (manifests(resource(limits(cpu=value)))["Deployment"] for value in (one, other))
    assert digest(before) != digest(after)


def test_shared_memory_counts_by_value_too() -> None:
    made = [manifests(resource({"sharedMemory.sizeLimit": size}))["Deployment"] for size in ("8192Mi", "8Gi", "9Gi")]
    assert digest(made[0]) == digest(made[1]) != digest(made[2])


def test_numbers_without_quotes_arrive_as_strings() -> None:
    made = engine(resource({"resources": {"limits": {"cpu": 4, "nvidia.com/gpu": 1}, "requests": {"cpu": 0.5}}}))
    assert made["resources"] == {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}, "requests": {"cpu": "0.5"}}


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (limits(memory="16GB"), "spec.resources.limits.memory", "16Gi or 16G"),
        (limits(**{"nvidia.com/gpu": "0.5"}), "spec.resources.limits.nvidia.com/gpu", "whole devices"),
        (limits(**{"nvidia.com/gpu": 0.5}), "spec.resources.limits.nvidia.com/gpu", "whole devices"),
        (limits(cpu=True), "spec.resources.limits.cpu", "not a quantity"),
        (limits(cpu="-1"), "spec.resources.limits.cpu", "negative"),
        ({"resources": {"limits": []}}, "spec.resources.limits", "must be a map"),
        ({"sharedMemory.sizeLimit": "8GB"}, "spec.sharedMemory.sizeLimit", "16Gi or 16G"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused_here(changes: dict[str, Any], path: str, words: str) -> None:
    (problem,) = envelope_problems(resource(changes))
    assert problem.field == path
    assert words in problem.message


@pytest.mark.parametrize("amount", ["1.5m", "1000m", "0.1", 0.5, 4, "1e3", "400m", "1k"])
def test_what_the_api_server_takes_is_taken(amount: object) -> None:
    assert envelope_problems(resource(limits(cpu=amount, **{"nvidia.com/gpu": "1k"}))) == []
