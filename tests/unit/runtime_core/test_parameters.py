"""Free keys of the speculative config, compared as vLLM reads them."""

from typing import Any

import pytest

from dsd_runtime.parameters import INTERNAL_KEYS, SWITCHES, TYPED_KEYS, parameter_problems, switch
from dsd_runtime.vllm_options import SPECULATIVE_CONFIG_KEYS


def _messages(parameters: dict[str, Any], method: str = "draft_model", runner: str = "Auto") -> list[str]:
    return [f"{p.field}: {p.message}" for p in parameter_problems(parameters, method, runner)]


@pytest.mark.parametrize("key", sorted(TYPED_KEYS))
@pytest.mark.parametrize("dash", [False, True])
def test_typed_keys_are_refused_in_both_spellings(key: str, dash: bool) -> None:
    spelling = key.replace("_", "-") if dash else key
    (message,) = _messages({spelling: 1})
    assert message.startswith(f"spec.drafter.parameters.{spelling}: ")
    assert f"set spec.{TYPED_KEYS[key]} instead" in message


def test_a_mixed_spelling_is_the_same_key() -> None:
    assert "set spec.drafter.numSpeculativeTokens" in _messages({"num-speculative_tokens": 7})[0]


@pytest.mark.parametrize("key", sorted(INTERNAL_KEYS))
def test_internal_keys_are_refused(key: str) -> None:
    assert "filled in by vLLM itself" in _messages({key: {}})[0]


@pytest.mark.parametrize("key", sorted(set(SPECULATIVE_CONFIG_KEYS) - set(TYPED_KEYS) - INTERNAL_KEYS - set(SWITCHES)))
def test_all_other_keys_of_vllm_pass(key: str) -> None:
    assert _messages({key: None}) == []


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("num_speculative_tokrns", "It has a field of its own, spec.drafter.numSpeculativeTokens"),
        ("ngram_prompt_lookup_max", "prompt_lookup_max"),
        ("quantisation", "did you mean quantization?"),
        ("{num_speculative_tokens", "num_speculative_tokens"),
        ("decoding_type", "knows no such key"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_name(key: str, hint: str) -> None:
    (message,) = _messages({key: 1})
    assert hint in message


def test_a_key_given_twice_is_refused() -> None:
    assert any("given twice" in m for m in _messages({"max-model-len": 1, "max_model_len": 2}))


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["true", 1, "yes"])
def test_switches_must_be_booleans(name: str, value: object) -> None:
    assert any("must be true or false" in m for m in _messages({name: value}))


@pytest.mark.parametrize(
    ("parameters", "method", "runner", "words"),
    [
        ({"use_heterogeneous_vocab": True}, "eagle", "Auto", "method draft_model only"),
        ({"use-heterogeneous-vocab": True}, "draft_model", "V2", "needs model runner V1"),
        (
            {"use_heterogeneous_vocab": True, "draft-sample-method": "probabilistic"},
            "draft_model",
            "Auto",
            "greedy only",
        ),
        ({"enable_adaptive_verification": True}, "eagle", "Auto", "method dspark only"),
        ({"enable_adaptive_verification": True}, "dspark", "V1", "needs model runner V2"),
        ({"parallel_drafting": True}, "eagle", "V2", "needs model runner V1"),
        ({"parallel_drafting": True}, "ngram", "Auto", "remove it"),
    ],
)
def test_combinations_vllm_refuses_at_start(parameters: dict[str, Any], method: str, runner: str, words: str) -> None:
    (message,) = _messages(parameters, method, runner)
    assert words in message


@pytest.mark.parametrize(
    ("parameters", "method", "runner"),
    [
        ({"use_heterogeneous_vocab": True, "draft_sample_method": "greedy"}, "draft_model", "V1"),
        ({"enable_adaptive_verification": True}, "dspark", "V2"),
        ({"parallel_drafting": True}, "eagle3", "Auto"),
        ({"parallel_drafting": True}, "dspark", "V2"),
        ({"parallel_drafting": False}, "ngram", "V2"),
    ],
)
def test_good_combinations_pass(parameters: dict[str, Any], method: str, runner: str) -> None:
    assert _messages(parameters, method, runner) == []


def test_switch_reads_both_spellings() -> None:
    assert switch({"parallel-drafting": True}, "parallel_drafting")
    assert not switch({"parallel_drafting": "true"}, "parallel_drafting")
    assert not switch({}, "parallel_drafting")
