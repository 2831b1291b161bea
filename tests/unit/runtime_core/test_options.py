"""What a person reads about arguments and variables that are refused; the spellings are tested against vLLM itself."""

import re

import pytest

from dsd_runtime.options import SPELLINGS, owned_problems, prefix_pattern, resolve
from dsd_runtime.owned import (
    DEAD_OPTIONS,
    OWNED_ENV,
    OWNED_GROUPS,
    OWNED_OPTIONS,
    TYPED_OPTIONS,
    OwnedGroup,
    env_problems,
)
from dsd_runtime.vllm_options import OPTIONS


def _message(*items: str) -> str:
    (problem,) = owned_problems(items)
    return f"{problem.field}: {problem.message}"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["-sc", "{}"], "extraArgs[0]: '-sc' (--speculative-config): speculative decoding is described by"),
        (["--seed", "0", "--max_num_seqs=8"], "extraArgs[2]: '--max_num_seqs' (--max-num-seqs): this has a field"),
        (["--served-model-name", "a", "b"], "set spec.model.servedNames instead"),
        (["--shutdown_t=50"], "'--shutdown_t' (--shutdown-timeout): this has a field of its own; set spec.rollout"),
        (["--max-model-len", "4096"], "set spec.engine.maxModelLen"),
        (["--distributed-executor-backend", "ray"], "only mp and uni stay inside a pod"),
        (["--seed 0"], "'--seed': option and value stand in one item; split into two items"),
        (["--seed"], "--seed needs a value"),
        (["--enforce-eager=1"], "is a switch and takes no value"),
        (["--seed", "0", "stray"], "extraArgs[2]: neither an option nor the value"),
        (["--sead=0"], "did you mean --seed?"),
        (["--conf=x"], "is short for several options: --config, --config-format"),
        (["--"], "would turn every option after it into a value"),
        (["--dsd-config=/x"], "are the operator's own"),
        (["--num_speculative_tokens", "5"], "no longer has this option: set spec.drafter.numSpeculativeTokens"),
        (["--task=generate"], "write --runner and --convert"),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_where(items: list[str], words: str) -> None:
    assert words in _message(*items)


@pytest.mark.parametrize(
    "items",
    [
        [],
        ["--seed", "0"],
        ["--seed", "-1"],
        ["--max-model-len", "auto"],
        ["--max_model_len=-1"],
        ["--distributed-executor-backend=mp"],
        ["--cudagraph-capture-sizes", "1", "2", "4", "--seed", "1"],
        ["--chat-template", "{{ a b }}"],
        ["--compilation-config.mode", "3", "--compilation_config.cudagraph_mode=PIECEWISE"],
        ["-O3"],
        ["--no-enable-prefix-caching"],
    ],
)
def test_takes_what_vllm_takes(items: list[str]) -> None:
    assert owned_problems(items) == []


@pytest.mark.parametrize(
    "items",
    [
        ["--hf-token=s3cr3t"],
        ["--hf-token", "s3cr3t"],
        ["--api-key s3cr3t"],
        ["--api-kee=s3cr3t"],
        ["--seed", "0", "s3cr3t"],
        ["--enforce-eager=s3cr3t"],
        ["--dsd-token=s3cr3t"],
        ["--a=s3cr3t"],
    ],
)
def test_values_are_never_repeated(items: list[str]) -> None:
    """A message ends up in the status, in Events and in logs."""
    assert "s3cr3t" not in _message(*items)


def test_the_path_is_the_callers() -> None:
    (problem,) = owned_problems(["--port=1"], "arguments")
    assert problem.field == "arguments[0]"


@pytest.mark.parametrize("item", ["acme/model", "", "-", "-1", "-0.5", "{}"])
def test_plain_values_are_no_options(item: str) -> None:
    assert resolve(item) is None


def test_owned_names_are_canonical_and_every_typed_option_is_owned() -> None:
    assert set(OWNED_OPTIONS) <= set(OPTIONS)
    assert set(TYPED_OPTIONS) <= set(OWNED_OPTIONS)
    assert not set(DEAD_OPTIONS) & set(SPELLINGS)


@pytest.mark.parametrize("group", OWNED_GROUPS, ids=lambda group: group.options[0])
def test_admission_pattern_matches_every_full_spelling_and_no_other_option(group: OwnedGroup) -> None:
    pattern = re.compile(prefix_pattern(group.options))
    for spelling, canonical in SPELLINGS.items():
        for written in (spelling, f"{spelling}=x", f"{spelling}.key"):
            assert bool(pattern.match(written)) == (canonical in group.options), written


@pytest.mark.parametrize("name", [*OWNED_ENV, "DSD_CONFIG", "DSD_ANYTHING"])
def test_owned_variables_are_refused_with_a_reason(name: str) -> None:
    (problem,) = env_problems([name, "HF_HOME", "VLLM_LOGGING_LEVEL"])
    assert problem.field == f"spec.engine.env[name={name}]"
    assert len(problem.message) > 30
