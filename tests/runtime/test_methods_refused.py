"""Methods that do not bear a K below their maximum: vLLM alone fails with one, and we refuse it.

Each engine in a process of its own. "Alone" means without our plugin, with a static table as a user of vLLM writes it.
What the API server says to such a resource is in tests/contract, from the same table. What repeats another row, and
what only vLLM alone does, is `long`: it changes with vLLM's version, not with ours.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsd_runtime.support import judge
from tests.runtime.method_probe import Case, Outcome, Prober
from tests.runtime.test_methods_honoured import check, every_k

pytestmark = pytest.mark.engine

MAXIMUM = 3
STAND_INS = {"PYTHONPATH": str(Path(__file__).with_name("stand_ins"))}


def engine(models: Path, method_models: Path, method: str, k: tuple[int, ...], *, plugin: bool) -> Case:
    """An engine with one of these methods."""
    model = {"medusa": str(method_models / "medusa"), "custom_class": "proposers.Repeat"}.get(method)
    speculative = {"method": method, "num_speculative_tokens": MAXIMUM} | ({"model": model} if model else {})
    return Case(str(models / "target"), speculative, every_k(*k), plugin, environment=STAND_INS)


MEDUSA = pytest.param("medusa", marks=pytest.mark.long)


@pytest.mark.parametrize("method", [MEDUSA, "suffix"])
def test_vllm_alone_dies_below_the_maximum(method: str, prober: Prober, models: Path, method_models: Path) -> None:
    outcome = prober.run(engine(models, method_models, method, (2,), plugin=False))
    assert outcome.error.startswith("AssertionError")
    assert "assert num_speculative_tokens == self.num_speculative_tokens" in outcome.log


@pytest.mark.parametrize("method", [MEDUSA, "suffix", "custom_class"])
def test_we_refuse_it_and_the_engine_goes_on(
    method: str, prober: Prober, without: Outcome, models: Path, method_models: Path
) -> None:
    """At start, where the file asks for 2, and while it runs, where PUT does: with the reason, and nothing is lost."""
    outcome = prober.run(engine(models, method_models, method, (2, 3, 0), plugin=True))
    assert (outcome.error, outcome.outputs) == ("", without.outputs), outcome.log[-3000:]
    reason = judge(method, "V1", MAXIMUM).reasons[2]
    assert f"{reason}. Possible here: 3; the schedule in use stays" in outcome.log
    assert {text.split(": ", 1)[1] for text in outcome.refused} == {
        f"K={k} is not possible with method {method} on model runner V1: {reason}. Possible here: 3" for k in (0, 2)
    }
    assert outcome.status["envelope"]["allowedTokens"] == [3]
    assert outcome.status["schedule"]["ranges"][0]["numSpeculativeTokens"] == 3


def hidden_states(models: Path, k: int, *, plugin: bool) -> Case:
    """An engine that drafts nothing of its own and keeps hidden states of two layers."""
    layers = {"hf_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}
    speculative = {"method": "extract_hidden_states", "num_speculative_tokens": 1, "draft_model_config": layers}
    return Case(str(models / "target"), speculative, every_k(1, k), plugin)


@pytest.mark.long
def test_hidden_states_alone_die_at_zero(prober: Prober, models: Path) -> None:
    alone = prober.run(replace(hidden_states(models, 0, plugin=False), tables=every_k(0)))
    assert alone.error.startswith("AssertionError")


def test_hidden_states_are_extracted_with_one_token(prober: Prober, without: Outcome, models: Path) -> None:
    """Alone, vLLM dies at K=0; we refuse it and go on with 1."""
    ours = prober.run(hidden_states(models, 0, plugin=True))
    assert (ours.error, ours.outputs) == ("", without.outputs), ours.log[-3000:]
    assert ours.status["envelope"]["allowedTokens"] == [1]
    assert [text for text in ours.refused if "extract_hidden_states works with K=1 only" in text] == ours.refused != []


NGRAM_GPU = """
from types import SimpleNamespace
from vllm.v1.spec_decode.ngram_proposer_gpu import NgramProposerGPU
NgramProposerGPU.propose(SimpleNamespace(k=3), 2, None, None, None, None)
"""


def test_ngram_on_the_gpu_dies_below_the_maximum(prober: Prober) -> None:
    """Its proposer alone: the engine pins memory for a GPU as it starts, and so starts on none."""
    outcome = prober.run(Case(program=NGRAM_GPU))
    assert outcome.error.startswith("AssertionError")
    assert "assert num_speculative_tokens == self.k" in outcome.log


@pytest.mark.long
def test_custom_proposer_is_not_told_which_k_is_wanted(prober: Prober, models: Path, method_models: Path) -> None:
    outcome = prober.run(engine(models, method_models, "custom_class", (1,), plugin=False))
    assert outcome.error == "", outcome.log[-3000:]
    assert outcome.drafted == outcome.drafts * MAXIMUM > 0


def parallel(models: Path, method_models: Path, tables: Any, *, plugin: bool) -> Case:
    """A draft model that drafts in parallel, as PARD does; 4 tokens at most."""
    speculative = {
        "method": "draft_model",
        "model": str(method_models / "parallel"),
        "num_speculative_tokens": 4,
        "parallel_drafting": True,
    }
    return Case(str(models / "target"), speculative, tables, plugin)


@pytest.fixture(scope="module")
def at_ends(prober: Prober, models: Path, method_models: Path) -> Outcome:
    """Parallel drafting with our plugin, every K tried."""
    return prober.run(parallel(models, method_models, every_k(4, 3, 2, 1, 0), plugin=True))


def test_parallel_drafting_honours_zero_and_the_maximum(at_ends: Outcome, without: Outcome) -> None:
    assert {text.split(" is not")[0] for text in at_ends.refused} == {"invalid: K=3", "invalid: K=2", "invalid: K=1"}
    assert "mixes up the drafts of different requests" in at_ends.refused[0]
    assert at_ends.status["envelope"]["allowedTokens"] == [0, 4]
    at_ends.refused.clear()
    check(at_ends, without, {0, 4}, maximum=4)


@pytest.mark.long
def test_parallel_drafting_alone_dies_where_the_drafts_cannot_be_divided(
    prober: Prober, models: Path, method_models: Path
) -> None:
    outcome = prober.run(parallel(models, method_models, every_k(3), plugin=False))
    assert "shape '[-1, 3]' is invalid for input of size" in outcome.error


def test_parallel_drafting_alone_mixes_up_drafts_where_they_can(
    at_ends: Outcome, prober: Prober, without: Outcome, models: Path, method_models: Path
) -> None:
    """The outputs stay right, for drafts are verified; what is lost is what speculation is for."""
    outcome = prober.run(parallel(models, method_models, every_k(2), plugin=False))
    assert (outcome.error, outcome.outputs) == ("", without.outputs)
    assert outcome.accepted_at[0] / outcome.drafts < 0.6 * at_ends.accepted_at[0] / at_ends.drafts
