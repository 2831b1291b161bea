"""Methods that honour every K on model runner V1: the real engine, with another K put before each step.

Outputs must equal those without speculation, token for token; drafts must be accepted; and no request may verify a
number of drafts that the schedule did not ask for. ngram is in `test_engine`; those marked `long` run in real pods too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.method_probe import Case, Outcome, Prober

pytestmark = pytest.mark.engine

MAXIMUM = 3
Table = tuple[tuple[int, int, int], ...]


def every_k(*values: int) -> tuple[Table, ...]:
    """For each K the schedule that has no other."""
    return tuple(((1, 8, k),) for k in values)


def check(outcome: Outcome, reference: Outcome, ks: set[int], maximum: int = MAXIMUM) -> None:
    """Nothing failed, the outputs are those of `reference`, and the steps verified what the schedules asked for."""
    assert (outcome.error, outcome.refused) == ("", []), outcome.log[-3000:]
    assert outcome.outputs == reference.outputs
    assert {int(k) for k in outcome.verified} == ks, outcome.verified
    assert 0 < outcome.accepted < outcome.drafted
    assert outcome.drafted < outcome.drafts * maximum or ks <= {0, maximum}


CASES: tuple[Any, ...] = (
    pytest.param({"method": "dflash", "model": "methods/dflash"}, id="dflash"),
    pytest.param({"method": "draft_model", "model": "tiny/draft"}, id="draft_model", marks=pytest.mark.long),
    pytest.param({"method": "eagle", "model": "tiny/eagle"}, id="eagle", marks=pytest.mark.long),
    pytest.param({"method": "eagle3", "model": "tiny/eagle3"}, id="eagle3", marks=pytest.mark.long),
)


def resolved(speculative: Mapping[str, Any], models: Path, method_models: Path) -> dict[str, Any]:
    """With the model's path for its short name."""
    folder, _, name = str(speculative.get("model", "")).partition("/")
    path = {"tiny": models, "methods": method_models}.get(folder)
    return {**speculative, "num_speculative_tokens": MAXIMUM, **({"model": str(path / name)} if path else {})}


@pytest.mark.parametrize("speculative", CASES)
def test_k_may_change_before_every_step(
    speculative: dict[str, Any], prober: Prober, without: Outcome, models: Path, method_models: Path
) -> None:
    case = Case(str(models / "target"), resolved(speculative, models, method_models), every_k(0, 1, 2, 3))
    check(prober.run(case), without, {0, 1, 2, 3})


@pytest.mark.parametrize(("target", "maximum"), [("mtp", 3), pytest.param("mtp-modules", 4, marks=pytest.mark.long)])
def test_mtp(target: str, maximum: int, prober: Prober, without: Outcome, method_models: Path) -> None:
    """The targets compute what `without` does: the same weights as another architecture, one that has MTP modules."""
    ks = range(maximum + 1)
    speculative = {"method": "mtp", "num_speculative_tokens": maximum}
    outcome = prober.run(Case(str(method_models / target), speculative, every_k(*ks)))
    check(outcome, without, set(ks), maximum)
    assert outcome.status["envelope"]["method"] == "mtp"


NGRAM = {"method": "ngram", "num_speculative_tokens": MAXIMUM, "prompt_lookup_min": 1, "prompt_lookup_max": 3}


@pytest.mark.long
def test_target_with_experts(prober: Prober, method_models: Path) -> None:
    path = str(method_models / "experts")
    reference = prober.run(Case(path))
    check(prober.run(Case(path, NGRAM, every_k(0, 1, 2, 3))), reference, {0, 1, 2, 3})
