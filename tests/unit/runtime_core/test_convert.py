"""Speculative configs as people write them, and what the converter makes of each."""

import json
from typing import Any

import pytest

from dsd_runtime.convert import Conversion, ConvertError, from_vllm, parse_object, to_vllm
from dsd_runtime.convert.keys import TABLE_KEY
from dsd_runtime.schedule import MAX_BATCH_SIZE, from_triples, to_triples

NGRAM = {"method": "ngram", "num_speculative_tokens": 4}


def notes(conversion: Conversion) -> str:
    """All notes as one text."""
    return "\n".join(f"{n.field}: {n.message}" for n in conversion.notes)


def table(value: Any, maximum: int = 7) -> Conversion:
    """A conversion with this table."""
    return from_vllm({"method": "ngram", "num_speculative_tokens": maximum, TABLE_KEY: value})


def test_the_example_of_vllms_documentation() -> None:
    given = {
        "method": "eagle",
        "model": "yuhuili/EAGLE-LLaMA3.1-Instruct-8B",
        "num_speculative_tokens": 3,
        TABLE_KEY: [[1, 64, 3], [65, 128, 1], [129, 512, 0]],
    }
    found = from_vllm(given)
    assert to_triples(found.ranges) == given[TABLE_KEY]
    assert found.speculative == {k: v for k, v in given.items() if k != TABLE_KEY}
    assert found.notes == ()
    assert found.for_vllm() == given


def test_clamped_k_is_said_aloud() -> None:
    """The second example of vLLM's documentation asks for K=5 with a maximum of 3."""
    found = table([[1, 16, 5], [17, 32, 4], [33, 64, 3]], maximum=3)
    assert to_triples(found.ranges) == [[1, 16, 3], [17, 32, 3], [33, 64, 3]]
    assert "K=5 is above num_speculative_tokens, so vLLM runs 3 here" in notes(found)
    assert "K=4 is above" in notes(found)


def test_dashes_in_keys() -> None:
    found = from_vllm({"method": "ngram", "num-speculative-tokens": 3})
    assert found.speculative["num_speculative_tokens"] == 3
    with pytest.raises(ConvertError, match="given twice"):
        from_vllm({"method": "ngram", "num-speculative-tokens": 3, "num_speculative_tokens": 7})


def test_old_name_of_the_lookup_window() -> None:
    found = from_vllm({"method": "ngram", "num_speculative_tokens": 10, "ngram_prompt_lookup_max": 10})
    assert found.speculative["prompt_lookup_max"] == 10
    assert "calls it prompt_lookup_max" in notes(found)


def test_one_end_of_the_lookup_window_stays_alone() -> None:
    """vLLM then takes it for the other end too; a minimum of 1 would be another window."""
    assert "prompt_lookup_min" not in from_vllm(NGRAM | {"prompt_lookup_max": 4}).speculative


@pytest.mark.parametrize(
    ("window", "hint"),
    [
        ({"prompt_lookup_min": 5, "prompt_lookup_max": 2}, "must not be above"),
        ({"prompt_lookup_min": 0}, "whole number from 1"),
        ({"prompt_lookup_max": True}, "whole number from 1"),
    ],
)
def test_bad_lookup_window(window: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        from_vllm(NGRAM | window)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("acme/EAGLE-t-8b", "eagle"),
        ("acme/t-EAGLE3", "eagle3"),
        ("acme/t-8b_eagle3", "eagle3"),
        ("acme/t-DFlash", "dflash"),
        ("acme/dspark-t", "dspark"),
        ("pkg.MyProposer", "custom_class"),
        ("gpt.small", "custom_class"),
        ("ngram", "ngram"),
        ("[ngram]", "ngram"),
    ],
)
def test_method_from_the_name(model: str, method: str) -> None:
    found = from_vllm({"model": model, "num_speculative_tokens": 4})
    assert found.speculative["method"] == method
    assert f"guessed from the model's name, as vLLM does: {method}" in notes(found)
    assert ("model" in found.speculative) == (method != "ngram")


@pytest.mark.parametrize("model", ["acme/t-small", "acme/t-assistant", "Qwen2.5", "/models/gpt.small"])
def test_method_that_the_name_does_not_tell(model: str) -> None:
    found = from_vllm({"model": model, "num_speculative_tokens": 4})
    assert "method" not in found.speculative
    assert "config.json" in notes(found)


def test_method_that_vllm_will_change() -> None:
    found = from_vllm({"method": "draft_model", "model": "acme/EAGLE-t-8b", "num_speculative_tokens": 4})
    assert "vLLM will use eagle instead of draft_model" in notes(found)


def test_mtp_aliases() -> None:
    found = from_vllm({"method": "qwen3_5_mtp", "num_speculative_tokens": 1, "enforce_eager": True})
    assert (found.speculative["method"], found.speculative["enforce_eager"]) == ("mtp", True)
    assert "old name of mtp" in notes(found)


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        ("EAGLE3", "did you mean eagle3"),
        ("eagel", "did you mean eagle"),
        ("[ngram]", "write ngram"),
        ("pard", "draft_model, and parallel_drafting: true"),
        ("arctic", "suffix"),
        ("xyz", "It has ngram"),
        (3, "name of a method"),
    ],
)
def test_unknown_method(method: Any, hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        from_vllm({"method": method, "model": "acme/x", "num_speculative_tokens": 4})


@pytest.mark.parametrize(
    "config",
    [
        {"method": "mtp", "model": "acme/t-assistant", "num_speculative_tokens": 4},
        {"method": "mtp", "num_speculative_tokens": 4},
        {"method": "dspark", "num_speculative_tokens": 5},
        {"method": "dspark", "model": "acme/x", "num_speculative_tokens": 5},
    ],
)
def test_model_is_optional_for_mtp_and_dspark(config: dict[str, Any]) -> None:
    assert from_vllm(config).speculative == config


def test_model_is_needed() -> None:
    with pytest.raises(ConvertError, match="method eagle needs one"):
        from_vllm({"method": "eagle", "num_speculative_tokens": 4})


@pytest.mark.parametrize("value", ["3", 3.0, 3])
def test_numbers_as_vllm_reads_them(value: Any) -> None:
    assert from_vllm({"method": "ngram", "num_speculative_tokens": value}).speculative["num_speculative_tokens"] == 3


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (None, "must be given"),
        (0, "greater than 0, not 0; to switch off at a batch size"),
        (-1, "greater than 0"),
        (True, "whole number"),
        (2.5, "whole number"),
        ("1k", "whole number"),
        (300, r"more than this project supports \(128\)"),
    ],
)
def test_bad_maximum(value: Any, hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        from_vllm({"method": "mtp", "num_speculative_tokens": value})


def test_suffix_without_a_maximum() -> None:
    found = from_vllm({"method": "suffix"})
    assert found.speculative["num_speculative_tokens"] == 24
    assert to_triples(found.ranges)[0][2] == 24
    assert "24, vLLM's default" in notes(found)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("num_speculative_tokrns", "did you mean num_speculative_tokens"),
        ("tensor_parallel_size", "draft_tensor_parallel_size"),
        ("num_nextn_predict_layers", "TensorRT-LLM"),
        ("speculative_num_steps", "SGLang"),
        ("disable_by_batch_size", "numSpeculativeTokens 0"),
        ("target_model_config", "filled in by vLLM itself"),
        ("ranges", "schedule file"),
        ("speculative-config", "what stands under it"),
        ("xyzzy", "knows no such key"),
    ],
)
def test_keys_that_vllm_refuses(key: str, hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        from_vllm(NGRAM | {key: 1})


def test_other_keys_stay_as_they_are() -> None:
    given = NGRAM | {"quantization": None, "attention_backend": "FLASH_ATTN", "disable_eagle_block_drop": True}
    assert from_vllm(given).speculative == given


def test_all_problems_at_once() -> None:
    with pytest.raises(ConvertError) as caught:
        from_vllm({"method": "EAGLE", "num_speculative_tokens": 0, "x": 1, TABLE_KEY: [[2, 3, 1]]})
    assert [p.field for p in caught.value.problems] == ["x", "method", "num_speculative_tokens", TABLE_KEY]


def test_synthetic_acceptance_is_a_loud_note() -> None:
    given = NGRAM | {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.27}
    assert "WARNING" in notes(from_vllm(given))
    with pytest.raises(ConvertError, match="wants one per token, 4"):
        from_vllm(given | {"synthetic_acceptance_rates": [0.5, 0.5]})


def test_combinations_that_vllm_refuses() -> None:
    with pytest.raises(ConvertError, match="greedy only"):
        from_vllm(
            {"method": "draft_model", "model": "acme/d", "num_speculative_tokens": 3, "use_heterogeneous_vocab": True}
            | {"draft_sample_method": "probabilistic"}
        )


def test_k_that_the_method_cannot_honour_on_any_runner() -> None:
    with pytest.raises(ConvertError, match="medusa"):
        from_vllm(
            {"method": "medusa", "model": "acme/m", "num_speculative_tokens": 3, TABLE_KEY: [[1, 8, 3], [9, 16, 0]]}
        )


def test_k_that_one_runner_cannot_honour_is_a_note() -> None:
    found = from_vllm({"method": "ngram_gpu", "num_speculative_tokens": 3, TABLE_KEY: [[1, 8, 3], [9, 16, 0]]})
    assert "with model runner V1" in notes(found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"1-16": 3, "64-128": 2, "256-4096": 0}, [[1, 16, 3], [64, 128, 2], [256, 4096, 0]]),
        ({"1": 3, "2-": 0}, [[1, 1, 3], [2, MAX_BATCH_SIZE, 0]]),
        ("[[1, 16, 3], [17, 64, 1]]", [[1, 16, 3], [17, 64, 1]]),
        ("1:2:4,3:999:2", [[1, 2, 4], [3, 999, 2]]),
        ("1-16:3,17-:0", [[1, 16, 3], [17, MAX_BATCH_SIZE, 0]]),
        ([["1", "16", "3"]], [[1, 16, 3]]),
        ([[9, 64, 1], [1, 8, 3]], [[1, 8, 3], [9, 64, 1]]),
        ([[1, 1, 7], [2, 2, 5], [3, 3, 4], [6, 32, 7]], [[1, 1, 7], [2, 2, 5], [3, 3, 4], [6, 32, 7]]),
        ([[1, 3, 7], [4, 6, 3], [7, 1000, 1]], [[1, 3, 7], [4, 6, 3], [7, 1000, 1]]),
    ],
)
def test_spellings_of_a_table(value: Any, expected: list[list[int]]) -> None:
    """Sorted, gaps kept, ends kept."""
    assert to_triples(table(value).ranges) == expected


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ([], "is empty"),
        ([1, 8, 4], r"write \[\[1, 8, 4\]\]"),
        ([[1, 8]], "list of three numbers"),
        ([[1, 8, 0, 4096, 3]], "second axis"),
        ([[1, None, 3]], "has no end"),
        ([[1, 8, 2.5]], "whole numbers"),
        ([[1, 8, True]], "whole numbers"),
        ([[0, 8, 3]], "at least 1"),
        ([[2, 8, 3]], "starts at 2; it must start at 1"),
        ([[1, 8, -1]], "not negative"),
        ([[8, 1, 3]], "end not below it"),
        ([[1, 8, 3], [8, 9, 1]], r"\[8, 9, 1\] overlaps \[1, 8, 3\]"),
        ([[1, 2**31, 3]], "largest batch size"),
        ([[i, i, 1] for i in range(1, 34)], "at most 32"),
        ([{"startBatchSize": 1}], "is an object"),
        ({"a-b": 3}, "is no range"),
        ("['[1','8','4]']", "is no schedule"),
        ("1-16", "is no schedule"),
        (3, "must be a list"),
        ('"[[1, 2, 3]]"', "text within a text"),
    ],
)
def test_tables_that_are_refused(value: Any, hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        table(value)


def test_missing_table_is_one_range() -> None:
    found = from_vllm(NGRAM, max_num_seqs=32)
    assert to_triples(found.ranges) == [[1, 32, 4]]
    assert "one range with K=4" in notes(found)


def test_ranges_beyond_the_engine_are_noted() -> None:
    found = from_vllm(NGRAM | {TABLE_KEY: [[1, 64, 3], [65, 512, 0]]}, max_num_seqs=64)
    assert "[65, 512, 0]: starts above max_num_seqs 64" in notes(found)


def test_off_everywhere_is_noted() -> None:
    assert "never speculates" in notes(table([[1, 64, 0]]))


def test_to_vllm_refuses_to_clamp() -> None:
    with pytest.raises(ConvertError, match="above the maximum of 4"):
        to_vllm(from_triples([(1, 8, 5)]), NGRAM)


def test_to_vllm_refuses_a_second_table() -> None:
    with pytest.raises(ConvertError, match="given twice"):
        to_vllm(from_triples([(1, 8, 3)]), NGRAM | {TABLE_KEY: [[1, 8, 3]]})


@pytest.mark.parametrize("text", ["", "null", " None ", "{}"])
def test_no_speculation_configured(text: str) -> None:
    with pytest.raises(ConvertError, match="no speculative decoding is configured here"):
        parse_object(text)


GOOD = '{"method": "mtp", "num_speculative_tokens": 3}'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"'{GOOD}'", "shell quotes around it"),
        (GOOD.replace('"', '\\"'), "backslashes"),
        (GOOD.replace('"', "“"), "typographic"),
        ("{method: mtp, num_speculative_tokens: 3}", "the shell removed the quotes"),
        ("{method:mtp,num_speculative_tokens:3}", "the shell removed the quotes"),
        (GOOD.replace("}", ",}"), "trailing comma"),
        (GOOD.replace("{", "{{").replace("}", "}}"), "doubled braces"),
        (GOOD.replace('"', "'"), "Python"),
        ("'" + GOOD.replace('"', '\\"').replace("}", ",}") + "'", "backslashes before them; a trailing comma"),
    ],
)
def test_damaged_json_is_named_and_shown_repaired(text: str, kind: str) -> None:
    with pytest.raises(ConvertError) as caught:
        parse_object(text)
    assert kind in str(caught.value)
    assert json.loads(str(caught.value).split("Did you mean '")[1][:-1]) == json.loads(GOOD)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"method":', "ends in the middle"),
        ('{"num_speculative_tokens": ${K}}', "variable K has not been filled in"),
        ('{"num_speculative_tokens": ${K:-3}}', r"""default that would be '\{"num_speculative_tokens": 3\}'"""),
        ("$(cat /spec.json)", r"\$\(cat /spec.json\) is for a shell"),
        ("--speculative-config={}", "only the value after it"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "given twice"),
        ("[]", "is a list"),
        ('"ngram"', "is a text"),
        ("-1", "is a number"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_text_that_is_no_object(text: str, hint: str) -> None:
    with pytest.raises(ConvertError, match=hint):
        parse_object(text)
