"""Speculative configs and schedules from the field, sections B and C of the collected cases, through the converter."""

from typing import Any

import pytest

from tests.unit.convert.converted import TABLE, Outcome, speculative


def drafter(config: dict[str, Any], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = speculative(config, *arguments).spec["drafter"]
    return found


def rows(found: Outcome) -> list[tuple[int, ...]]:
    return [tuple(item.values()) for item in found.spec["schedule"]]


def ngram(**more: Any) -> dict[str, Any]:
    return {"method": "ngram", "num_speculative_tokens": 3, **more}


def table(value: Any, k: int = 3, *arguments: str) -> Outcome:
    return speculative(ngram(num_speculative_tokens=k) | {TABLE: value}, *arguments)


@pytest.mark.parametrize(
    ("keys", "lookup"),
    [
        ({"ngram_prompt_lookup_max": 10}, {"max": 10}),
        ({"prompt_lookup_max": 4}, {"max": 4}),
        ({"prompt_lookup_min": 2, "prompt_lookup_max": 4}, {"min": 2, "max": 4}),
        ({}, None),
    ],
)
def test_the_window_keeps_what_is_said_and_nothing_else(keys: dict[str, int], lookup: dict[str, int] | None) -> None:
    assert drafter(ngram(**keys)).get("promptLookup") == lookup


@pytest.mark.parametrize("keys", [{"prompt_lookup_min": 5, "prompt_lookup_max": 2}, {"prompt_lookup_min": 0}])
def test_windows_that_vllm_refuses(keys: dict[str, int]) -> None:
    assert "prompt_lookup_min" in speculative(ngram(**keys)).stderr


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("acme/EAGLE-t-8b", "eagle"),
        ("acme/t-EAGLE3", "eagle3"),
        ("acme/t-8b_eagle3", "eagle3"),
        ("acme/t-DFlash", "dflash"),
        ("ngram", "ngram"),
        ("[ngram]", "ngram"),
        ("pkg.MyProposer", "custom_class"),
    ],
)
def test_a_method_that_the_name_tells_is_said_to_be_guessed(model: str, method: str) -> None:
    found = speculative({"model": model, "num_speculative_tokens": 4}, options=["--schedule", "1-:4"])
    if method == "custom_class":
        assert found.noted("Python class") or method in found.stderr
        return
    assert found.spec["drafter"]["method"] == method
    assert found.noted("method", "guessed")


@pytest.mark.parametrize("model", ["acme/t-small", "acme/t-assistant", "Qwen2.5"])
def test_a_method_that_only_the_checkpoint_knows_is_asked_for(model: str) -> None:
    config = {"model": model, "num_speculative_tokens": 4}
    found = speculative(config)
    assert found.code == 2
    assert "give it with --method" in found.stderr
    assert speculative(config, options=["--method", "draft_model"]).spec["drafter"]["method"] == "draft_model"


@pytest.mark.parametrize("alias", ["deepseek_mtp", "qwen3_next_mtp", "qwen3_5_mtp"])
def test_aliases_of_mtp(alias: str) -> None:
    found = speculative({"method": alias, "num_speculative_tokens": 1, "enforce_eager": True})
    assert found.spec["drafter"] == {"method": "mtp", "numSpeculativeTokens": 1, "parameters": {"enforce_eager": True}}
    assert found.noted("method", "mtp")


@pytest.mark.parametrize(
    ("method", "hint"), [("EAGLE3", "did you mean eagle3?"), ("pard", "draft_model"), ("arctic", "suffix")]
)
def test_methods_that_are_none(method: str, hint: str) -> None:
    assert hint in speculative({"method": method, "model": "acme/h", "num_speculative_tokens": 3}).stderr


@pytest.mark.parametrize("method", ["mtp", "dspark"])
@pytest.mark.parametrize("model", [None, "acme/t-assistant"])
def test_a_model_of_its_own_is_optional(method: str, model: str | None) -> None:
    config = {"method": method, "num_speculative_tokens": 4} | ({"model": model} if model else {})
    assert drafter(config).get("model") == model


def test_k_is_asked_for() -> None:
    assert "num_speculative_tokens: must be given" in speculative({"method": "mtp"}).stderr


@pytest.mark.parametrize(("k", "value"), [("3", 3), (3.0, 3), (128, 128)])
def test_k_as_it_is_written(k: Any, value: int) -> None:
    assert drafter(ngram(num_speculative_tokens=k))["numSpeculativeTokens"] == value


@pytest.mark.parametrize(
    ("k", "hint"),
    [
        (0, "give it K=0 in the schedule"),
        (-1, "greater than 0"),
        (True, "whole number"),
        (2.5, "whole number"),
        (300, "more than this project supports (128)"),
    ],
)
def test_k_that_cannot_be(k: Any, hint: str) -> None:
    assert hint in speculative(ngram(num_speculative_tokens=k)).stderr


def test_suffix_without_k() -> None:
    found = speculative({"method": "suffix"})
    assert found.spec["drafter"]["numSpeculativeTokens"] == 24
    assert found.noted("24", "default for suffix")


@pytest.mark.parametrize(
    ("size", "target", "method", "fits"),
    [
        (1, 4, "eagle3", True), (4, 4, "eagle3", True), (2, 4, "eagle3", False),
        (1, 4, "draft_model", False), (4, 4, "draft_model", True), ("4", 4, "eagle3", True),
    ],
)  # fmt: skip
def test_tensor_parallel_size_of_the_drafter(size: Any, target: int, method: str, fits: bool) -> None:
    config = {"method": method, "model": "acme/h", "num_speculative_tokens": 3, "draft_tensor_parallel_size": size}
    found = speculative(config, "-tp", str(target))
    assert found.code == (0 if fits else 2)
    if fits:
        assert found.spec["drafter"]["tensorParallelSize"] == int(size)
    assert found.noted("1 has no effect on a head") == (size == 1 and method == "eagle3")


def test_keys_that_vllm_knows_pass_and_others_do_not() -> None:
    more = {
        "attention_backend": "FLASH_ATTN",
        "kv_cache_dtype": "fp8",
        "disable_padded_drafter_batch": True,
        "quantization": None,
    }
    config = {"method": "eagle3", "model": "acme/h", "num_speculative_tokens": 3}
    del (kept := dict(more))["quantization"]
    assert drafter(config | more, "--quantization", "fp8")["parameters"] == kept
    found = speculative(config | {"num_speculative_tokrns": 3})
    assert "did you mean num_speculative_tokens" in found.stderr


def test_made_up_acceptance_is_loud() -> None:
    config = {"method": "eagle3", "model": "acme/h", "num_speculative_tokens": 3,
              "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.27}  # fmt: skip
    assert speculative(config).noted("WARNING", "made up")


# Schedules.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"1-16": 3, "64-128": 2, "256-4096": 0}, [(1, 16, 3), (64, 128, 2), (256, 4096, 0)]),
        ("1:2:3,3:999:2", [(1, 2, 3), (3, 999, 2)]),
        ("[[1, 16, 3]]", [(1, 16, 3)]),
        ([["1", "16", "3"]], [(1, 16, 3)]),
        ([[17, 64, 1], [1, 16, 3]], [(1, 16, 3), (17, 64, 1)]),
        ([[1, 64, 0]], [(1, 64, 0)]),
        ([[1, 3, 3], [4, 6, 2], [7, 1000, 1]], [(1, 3, 3), (4, 6, 2), (7, 1000, 1)]),
    ],
)
def test_schedules_in_any_spelling(value: Any, expected: list[tuple[int, ...]]) -> None:
    assert rows(table(value)) == expected


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ([[1, 16, 100, 200, 3]], "second axis"),
        ([[2, 16, 3]], "must start at 1"),
        ([[0, 16, 3]], "at least 1"),
        ([[1, 16, 3], [10, 20, 1]], "overlaps"),
        ([], "is empty"),
        ([1, 16, 3], "[[1, 16, 3]]"),
        ([[1, None, 3]], "no end"),
        ([[1, 16, 2.5]], "whole numbers"),
    ],
)
def test_schedules_that_mean_nothing(value: Any, hint: str) -> None:
    found = table(value)
    assert found.code == 2
    assert hint in found.stderr


def test_six_k_and_as_few_requests() -> None:
    value = [[1, 1, 7], [2, 2, 5], [3, 3, 4], [4, 4, 3], [5, 5, 2], [6, 32, 7]]
    found = table(value, 7, "--max-num-seqs", "6")
    assert rows(found) == [tuple(row) for row in value]


def test_ranges_that_are_never_reached_are_kept_and_noted() -> None:
    found = table([[1, 3, 3], [4, 6, 2], [100, 1000, 1]], 3, "--max-num-seqs", "8")
    assert rows(found)[-1] == (100, 1000, 1)
    assert found.noted("never applies")


def test_off_everywhere_is_said() -> None:
    assert table([[1, 64, 0]]).noted("never speculates")


def test_k_above_the_maximum_is_what_vllm_ran() -> None:
    found = table([[1, 16, 5], [17, 64, 3]], 3)
    assert rows(found) == [(1, 16, 3), (17, 64, 3)]
    assert found.noted("K=5 is above num_speculative_tokens")


def test_without_a_table_there_is_one_range() -> None:
    assert rows(speculative(ngram(), "--max-num-seqs", "64")) == [(1, 64, 3)]
    assert speculative(ngram()).noted("one range with K=3")


def test_a_schedule_of_the_persons_own() -> None:
    found = speculative(ngram(), options=["--schedule", "1-16:3,17-64:1,65-:0"])
    assert rows(found) == [(1, 16, 3), (17, 64, 1), (65, 2**31 - 1, 0)]
