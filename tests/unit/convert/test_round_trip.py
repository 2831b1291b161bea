"""vLLM's own option table: what is printed, rendered and parsed by vLLM again is the engine of the original line.

Marked `engine` because vLLM's parser means importing vLLM.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dsd_runtime.options import SPELLINGS, resolve
from dsd_runtime.owned import OWNED_OPTIONS
from dsd_runtime.vllm_options import METHODS, OPTIONS
from tests.unit.convert.converted import (
    NGRAM,
    TABLE,
    engine_view,
    rendered,
    same_engine,
    speculative,
    vllm_reads,
    words,
)
from tests.unit.runtime_core import serve_parser
from tests.unit.runtime_core.test_options_against_vllm import spellings

pytestmark = pytest.mark.engine

REFUSED = {
    *(
        "--help",
        "--config",
        "--headless",
        "--pipeline-parallel-size",
        "--nnodes",
        "--node-rank",
        "--distributed-executor-backend",
    ),
    *(name for name in OPTIONS if name.startswith("--data-parallel-")),
}
"""Options that may end the conversion: another engine would come out."""

GIVEN_ELSEWHERE = {"--model", "--speculative-config", "--spec-method", "--spec-model", "--spec-tokens"}
OPEN = sorted(set(OPTIONS) - GIVEN_ELSEWHERE)


def check(line: list[str], used: set[str]) -> None:
    """The engine of `line` is the one that is printed, but for what was told; `used` are the options in it."""
    original = vllm_reads(line)
    assume(original is not None)
    assert original is not None
    found = words("vllm", "serve", *line)
    if not found.resource:
        assert used & (REFUSED | BOUNDED), found.stderr
        return
    again = vllm_reads(rendered(found.resource))
    assert again is not None, rendered(found.resource)
    first, second = engine_view(original), engine_view(again)
    changed = {
        serve_parser.canonical_of()[d] for d in first if first[d] != second[d] and d in serve_parser.canonical_of()
    }
    told = {option.canonical for lost in [*found.lost, *found.notes] if (option := resolve(lost.partition(":")[0]))}
    assert changed <= told
    assert changed <= OWNED_OPTIONS.keys()
    assert first["model"] == second["model"]
    assert first["speculative_config"] == second["speculative_config"]


BOUNDED = {
    *("--max-num-seqs", "--max-model-len", "--tensor-parallel-size", "--gpu-memory-utilization"),
    "--shutdown-timeout",
}
"""Typed options whose value the resource bounds more tightly than vLLM's parser, which takes any number."""


@pytest.mark.parametrize("canonical", OPEN)
def test_each_option_of_the_table(canonical: str) -> None:
    value = serve_parser.good_value(canonical) if canonical != "--help" else None
    negative = "--no-" + canonical.removeprefix("--")
    lines = [[canonical], [negative]] if value is None else [[canonical, value], [f"{canonical}={value}"]]
    for extra in [line for line in lines if line[0] in SPELLINGS or value is not None]:
        if vllm_reads(["acme/t", *extra, "-sc", NGRAM]) is not None:
            check(["acme/t", *extra, "-sc", NGRAM], {canonical})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.lists(spellings().filter(lambda s: s[0] in OPEN and s[0] not in REFUSED), max_size=6), st.booleans())
def test_options_together_in_any_spelling(options: list[tuple[str, list[str]]], model_last: bool) -> None:
    given = [word for _, line in options for word in line]
    line = [*given, "-sc", NGRAM, "acme/t"] if model_last else ["acme/t", "-sc", NGRAM, *given]
    check(line, {canonical for canonical, _ in options})


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(TEXT)
def test_any_text_as_a_value_arrives(value: str) -> None:
    """Dollars, quotes, white space, YAML's words: nothing on the way changes them."""
    line = ["acme/t", f"--chat-template={value}", f"--response-role={value}", "-sc", NGRAM]
    found = words("vllm", "serve", *line)
    if found.resource and not found.lost:  # a text may look like a secret
        same_engine(line, found.resource)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=4), st.booleans())
def test_any_json_as_a_value_arrives(value: dict[str, Any], dotted: bool) -> None:
    more = (
        ["--hf-overrides.a.b+=1,2", "--hf-overrides.a_c", "1k"] if dotted else [f"--hf-overrides={json.dumps(value)}"]
    )
    line = ["acme/t", *more, f"--additional-config={json.dumps(value)}", "-sc", NGRAM]
    found = words("vllm", "serve", *line)
    if found.resource and not found.lost:
        same_engine(line, found.resource)


FREE = {
    "enforce_eager": st.booleans(),
    "moe_backend": st.just("auto"),
    "kv_cache_dtype": st.sampled_from(["auto", "fp8"]),
    "max_model_len": st.integers(1, 9999),
    "disable_padded_drafter_batch": st.booleans(),
    "quantization": st.just("fp8"),
    "draft_sample_method": st.just("greedy"),
}


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Speculative configs with a method, in random spellings of the keys."""
    method = draw(st.sampled_from([m for m in METHODS if m not in ("custom_class", "extract_hidden_states")]))
    k = draw(st.integers(1, 6))
    config: dict[str, Any] = {"method": method, "num_speculative_tokens": k}
    if method not in ("ngram", "ngram_gpu", "suffix"):
        config["model"] = f"acme/{method}"
    config |= {key: draw(FREE[key]) for key in draw(st.sets(st.sampled_from(sorted(FREE))))}
    if draw(st.booleans()):
        config[TABLE] = [[1, 8, k], [9, 64, k]]
    return {draw(st.sampled_from([key, key.replace("_", "-")])): value for key, value in config.items()}


@settings(max_examples=100, deadline=None)
@given(configs(), st.sampled_from(["json", "joined", "dotted", "alias"]))
def test_speculative_configs_arrive(config: dict[str, Any], style: str) -> None:
    text = json.dumps(config)
    line = {
        "json": ["--speculative-config", text],
        "joined": [f"--speculative_config={text}"],
        "alias": ["-sc", text],
        "dotted": [f"--speculative-config.{key}={json.dumps(value)}" for key, value in config.items()],
    }[style]
    found = words("vllm", "serve", "acme/t", *line)
    if found.code == 2:
        assert found.stderr.count("\n") > 0
        assert speculative(config).code == 2, "one spelling is as good as another"
        return
    same_engine(["acme/t", *line], found.resource)
    table = {k.replace("-", "_"): v for k, v in config.items()}.get(TABLE)
    if table:
        assert [list(item.values()) for item in found.spec["schedule"]] == table
