"""The engine's argv: exec form, literal for the kubelet, and never a word about the schedule."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.arguments import engine_arguments, literal
from tests.unit.resources import engine, resource


def value_of(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def kubelet_expand(text: str) -> str:
    """How the kubelet expands an argument when no variable is defined (`third_party/forked/golang/expansion`)."""
    return re.sub(r"\$(\$|\([^)]*\))", lambda m: "$" if m[1] == "$" else m[0], text)


def test_the_model_comes_first_and_the_users_arguments_last() -> None:
    made = engine(resource({"engine.extraArgs": ["--seed=0", "--enforce-eager"]}))
    assert made["command"] == ["dsd-serve"]
    assert made["args"][0] == "acme/tiny-llama"
    assert made["args"][-2:] == ["--seed=0", "--enforce-eager"]
    assert value_of(made["args"], "--dsd-config") == "/etc/dsd/config.yaml"
    assert value_of(made["args"], "--port") == "8000"


def test_the_speculative_config_is_one_item_in_vllms_spelling() -> None:
    drafter = {
        "method": "eagle3",
        "model": "acme/head",
        "revision": "main",
        "numSpeculativeTokens": 5,
        "tensorParallelSize": 1,
        "parameters": {"quantization": "fp8"},
    }
    arguments = engine_arguments(resource({"drafter": drafter}).spec)
    assert json.loads(value_of(arguments, "--speculative-config")) == {
        "method": "eagle3",
        "model": "acme/head",
        "revision": "main",
        "num_speculative_tokens": 5,
        "draft_tensor_parallel_size": 1,
        "quantization": "fp8",
    }


def test_the_targets_quantization_is_not_the_drafters() -> None:
    """A plain drafter beside a quantised target: vLLM would not find the scales it looks for."""
    drafter = {"method": "eagle", "model": "acme/head", "numSpeculativeTokens": 3}
    arguments = engine_arguments(resource({"drafter": drafter, "engine.quantization": "fp8"}).spec)
    assert value_of(arguments, "--quantization") == "fp8"
    assert "quantization" not in json.loads(value_of(arguments, "--speculative-config"))


def test_free_keys_are_handed_over_as_they_are() -> None:
    """But for null, which is vLLM's default of every key."""
    parameters = {"enforce_eager": True, "max-model-len": 2048, "draft_load_config": {"a": [1]}}
    arguments = engine_arguments(resource({"drafter.parameters": parameters | {"quantization": None}}).spec)
    found = json.loads(value_of(arguments, "--speculative-config"))
    assert {key: found[key] for key in parameters} == parameters
    assert found["enforce_eager"] is True
    assert "quantization" not in found


@pytest.mark.parametrize(
    ("window", "rendered"),
    [
        ({"max": 4}, {"prompt_lookup_max": 4}),
        ({"min": 2, "max": 4}, {"prompt_lookup_min": 2, "prompt_lookup_max": 4}),
        (None, {}),
    ],
)
def test_what_the_user_leaves_out_is_left_to_vllm(window: object, rendered: dict[str, int]) -> None:
    arguments = engine_arguments(resource({"drafter.promptLookup": window}).spec)
    found = json.loads(value_of(arguments, "--speculative-config"))
    assert {key: value for key, value in found.items() if key.startswith("prompt_lookup")} == rendered


@pytest.mark.parametrize(
    ("field", "value", "items"),
    [
        ("model.revision", "refs/pr/1", ["--revision", "refs/pr/1"]),
        ("model.servedNames", ["a", "b,c"], ["--served-model-name", "a", "b,c", "--dsd-config"]),
        ("engine.maxNumSeqs", 1048576, ["--max-num-seqs", "1048576"]),
        ("engine.maxModelLen", 131072, ["--max-model-len", "131072"]),
        ("engine.dtype", "float32", ["--dtype", "float32"]),
        ("engine.quantization", "awq", ["--quantization", "awq"]),
        ("engine.tensorParallelSize", 4, ["--tensor-parallel-size", "4"]),
        ("engine.gpuMemoryUtilization", 0.85, ["--gpu-memory-utilization", "0.85"]),
    ],
)
def test_each_typed_field_becomes_its_option(field: str, value: object, items: list[str]) -> None:
    arguments = engine_arguments(resource({field: value}).spec)
    start = arguments.index(items[0])
    assert arguments[start : start + len(items)] == items
    assert items[0] not in engine_arguments(resource().spec)


@pytest.mark.parametrize(
    ("maximum", "asked", "prepared"),
    [(3, None, "0,1,2,3"), (4, None, "0,1,2,3,4"), (7, None, "0,1,4,7"), (7, [7, 2, 0], "0,2,7")],
)
def test_prepared_tokens(maximum: int, asked: list[int] | None, prepared: str) -> None:
    made = resource({"drafter.numSpeculativeTokens": maximum, "drafter.preparedTokens": asked})
    assert value_of(engine_arguments(made.spec), "--dsd-prepared-tokens") == prepared


def test_a_k_that_would_stop_the_engine_is_not_prepared() -> None:
    drafter = {"method": "suffix", "numSpeculativeTokens": 3}
    schedule = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}]
    made = resource({"drafter": drafter, "schedule": schedule})
    assert value_of(engine_arguments(made.spec), "--dsd-prepared-tokens") == "3"


@given(st.text(st.sampled_from("$()aB{}'\" \\`")))
def test_the_kubelet_hands_over_what_we_wrote(text: str) -> None:
    assert kubelet_expand(literal(text)) == text


@pytest.mark.parametrize("text", ["$(HOME)", "$$", "$(A)$$(B)", "cost: 5$"])
def test_tokens_reach_vllm_as_they_stand(text: str) -> None:
    made = engine(resource({"engine.extraArgs": [f"--chat-template={text}"], "model.name": f"acme/{text}"}))
    assert kubelet_expand(made["args"][-1]) == f"--chat-template={text}"
    assert kubelet_expand(made["args"][0]) == f"acme/{text}"
