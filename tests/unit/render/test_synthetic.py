"""Synthetic acceptance: taken when it is complete, refused with the field where vLLM would not start."""

from typing import Any

import pytest

from dsd_operator.render.preflight import problems
from dsd_operator.render.synthetic import is_synthetic
from tests.unit.resources import resource


def with_parameters(**parameters: Any) -> Any:
    """A resource with a maximum of 3 and these parameters."""
    return resource({"drafter.parameters": parameters})


@pytest.mark.parametrize(
    "parameters",
    [
        {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.27},
        {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 4},
        {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.9, 0.5, 0.5]},
        {"rejection-sample-method": "synthetic", "synthetic-acceptance-rates": [1, 1, 0]},
    ],
)
def test_complete(parameters: dict[str, Any]) -> None:
    found = with_parameters(**parameters)
    assert problems(found) == []
    assert is_synthetic(found.spec)


@pytest.mark.parametrize("parameters", [{}, {"rejection_sample_method": "standard"}, {"rejection_sample_method": None}])
def test_not_synthetic(parameters: dict[str, Any]) -> None:
    found = with_parameters(**parameters)
    assert problems(found) == []
    assert not is_synthetic(found.spec)


@pytest.mark.parametrize(
    ("parameters", "field", "words"),
    [
        ({}, "rejection_sample_method", "exactly one of"),
        (
            {"synthetic_acceptance_rates": [1, 1, 1], "synthetic_acceptance_length": 2},
            "rejection_sample_method",
            "exactly one of",
        ),
        ({"synthetic_acceptance_rates": [0.9, 0.5]}, "synthetic_acceptance_rates", "must be 3 numbers"),
        ({"synthetic_acceptance_rates": [0.5, 0.9, 0.1]}, "synthetic_acceptance_rates", "down to 0"),
        ({"synthetic_acceptance_rates": [1.1, 0.9, 0.1]}, "synthetic_acceptance_rates", "from 1"),
        ({"synthetic_acceptance_rates": [0.9, 0.5, "0.1"]}, "synthetic_acceptance_rates", "numbers"),
        ({"synthetic_acceptance_rates": 0.9}, "synthetic_acceptance_rates", "must be 3 numbers"),
        ({"synthetic_acceptance_length": 0.5}, "synthetic_acceptance_length", "between 1 and 4"),
        ({"synthetic_acceptance_length": 4.5}, "synthetic_acceptance_length", "between 1 and 4"),
        ({"synthetic-acceptance-length": "2"}, "synthetic-acceptance-length", "a number"),
    ],
)
def test_what_vllm_would_refuse_at_start(parameters: dict[str, Any], field: str, words: str) -> None:
    (problem,) = problems(with_parameters(rejection_sample_method="synthetic", **parameters))
    assert problem.field == f"spec.drafter.parameters.{field}"
    assert words in problem.message


def test_rates_go_with_the_maximum() -> None:
    """A larger maximum needs more rates: found before pods are replaced."""
    rates = {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.9, 0.5, 0.1]}
    (problem,) = problems(resource({"drafter.parameters": rates, "drafter.numSpeculativeTokens": 4}))
    assert "must be 4 numbers" in problem.message


def test_rates_without_the_mode() -> None:
    (problem,) = problems(with_parameters(synthetic_acceptance_length=2))
    assert problem.field == "spec.drafter.parameters.synthetic_acceptance_length"
