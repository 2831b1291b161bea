"""Synthetic acceptance: vLLM's benchmark mode, in which the engine makes up which drafts are accepted. Pure.

It is allowed, since it shows what a drafter of that quality would bring, and it is never silent: the tokens are not
the model's.
"""

from collections.abc import Iterator
from typing import Final

from dsd_operator.api import Spec
from dsd_runtime.parameters import normalise
from dsd_runtime.schedule import Problem

METHOD: Final = "rejection_sample_method"
RATES: Final = "synthetic_acceptance_rates"
LENGTH: Final = "synthetic_acceptance_length"

WARNING: Final = (
    f"TOKENS ARE MADE UP: drafter.parameters.{METHOD} is synthetic, which accepts drafts by chance; texts and "
    "acceptance metrics mean nothing, only speed does. Remove it outside a benchmark"
)


def is_synthetic(spec: Spec) -> bool:
    """Whether accepted tokens are made up."""
    return any(normalise(key) == METHOD and value == "synthetic" for key, value in spec.drafter.parameters.items())


def synthetic_problems(spec: Spec) -> Iterator[Problem]:
    """What vLLM refuses at start (`SpeculativeConfig._resolve_synthetic_acceptance_rates`)."""
    given = {normalise(key): key for key in spec.drafter.parameters}
    values = {name: spec.drafter.parameters[key] for name, key in given.items()}
    maximum = spec.drafter.num_speculative_tokens
    field = "spec.drafter.parameters"
    rates, length = values.get(RATES), values.get(LENGTH)
    if not is_synthetic(spec):
        for name in (RATES, LENGTH):
            if values.get(name) is not None:
                yield Problem(f"{field}.{given[name]}", f"means something with {METHOD} synthetic only; remove it")
    elif (rates is None) == (length is None):
        yield Problem(f"{field}.{given[METHOD]}", f"synthetic needs exactly one of {RATES} and {LENGTH}")
    elif rates is not None and not _descending(rates, maximum):
        yield Problem(
            f"{field}.{given[RATES]}",
            f"must be {maximum} numbers from 1 down to 0, one for each of drafter.numSpeculativeTokens",
        )
    elif length is not None and not (_is_number(length) and 1 <= length <= maximum + 1):
        yield Problem(f"{field}.{given[LENGTH]}", f"must be a number between 1 and {maximum + 1}")


def _descending(rates: object, maximum: int) -> bool:
    if not isinstance(rates, list) or len(rates) != maximum or not all(map(_is_number, rates)):
        return False
    return rates == sorted(rates, reverse=True) and rates[-1] >= 0 and rates[0] <= 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
