"""A full batch must fit into one step where LoRA adapters are on; elsewhere it is only remarked on."""

import pytest

from dsd_operator.render.budget import shortage
from dsd_operator.render.preflight import problems
from tests.unit.resources import resource


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-num-batched-tokens", "2048"],
        ["--max-num-batched-tokens=2K"],
        ["--max_num_batched_tokens=2k"],
        ["--max-num-batched", "2.0k"],
        ["--max-num-batched-tokens=9000", "--max-num-batched-tokens", "2048"],
    ],
)
@pytest.mark.parametrize("lora", ["--enable-lora", "--enable_lora"])
def test_too_few_tokens_for_lora(arguments: list[str], lora: str) -> None:
    """2048 tokens, 256 sequences: vLLM starts with 7 drafts for each and not with 8."""
    changes = {"engine.maxNumSeqs": 256, "engine.extraArgs": [lora, *arguments], "drafter.numSpeculativeTokens": 8}
    (problem,) = problems(resource(changes))
    assert problem.field == "spec.engine.extraArgs"
    assert "2304" in problem.message
    assert problems(resource(changes | {"engine.maxNumSeqs": 222})) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-num-batched-tokens", "120"],
        ["--max-num-batched-tokens", "120", "--no-enable-lora"],
        ["--enable-lora"],
        ["--enable-lora", "--max-num-batched-tokens=16K"],
        ["--enable-lora", "--max-num-batched-tokens=9000"],
    ],
)
def test_what_vllm_takes_is_not_refused(arguments: list[str]) -> None:
    """Without LoRA a small budget works, and an unknown one is vLLM's to judge."""
    assert problems(resource({"engine.maxNumSeqs": 60, "engine.extraArgs": arguments})) == []


def test_numbers_that_are_not_in_the_resource() -> None:
    arguments = {"engine.extraArgs": ["--max-num-batched-tokens", "120"]}
    assert shortage(resource(arguments).spec) is None
    assert shortage(resource({"engine.maxNumSeqs": 4096}).spec) is None
    assert shortage(resource(arguments | {"engine.maxNumSeqs": 60}).spec) is not None
