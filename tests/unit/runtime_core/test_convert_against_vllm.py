"""There and back again: the converted schedule means to vLLM what the original meant."""

import ast
import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsd_runtime.convert import ConvertError, from_vllm, parse_object, to_vllm
from dsd_runtime.convert.keys import TABLE_KEY
from dsd_runtime.convert.methods import by_model_name, is_python_path
from dsd_runtime.convert.speculative import SUFFIX_TOKENS
from tests.unit.runtime_core import vllm_source
from tests.unit.runtime_core.strategies import MAXIMA, TABLES, nearly_valid_tables

ORACLE: Any = vllm_source.load("v1/spec_decode/dynamic/utils.py")

SPECULATIVE_FILE = "config/speculative.py"


def meaning(config: dict[str, Any], max_num_seqs: int) -> list[int]:
    """K of each batch size, by vLLM's own lookup builder; without a table it is the maximum everywhere."""
    maximum = config["num_speculative_tokens"]
    if config.get(TABLE_KEY) is None:
        return [0] + [maximum] * max_num_seqs
    dense: list[int] = ORACLE.build_dynamic_sd_schedule_lookup(config[TABLE_KEY], max_num_seqs, maximum)
    return dense


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Speculative configs: tables right and nearly right, in any order, with K's above the maximum."""
    table = draw(st.one_of(TABLES, nearly_valid_tables()))
    rows = [list(row) for row in draw(st.permutations(table))]
    config: dict[str, Any] = {"method": "ngram", "num_speculative_tokens": draw(MAXIMA)}
    return config if draw(st.integers(0, 9)) == 0 else config | {TABLE_KEY: rows}


@settings(max_examples=300)
@given(configs(), st.integers(1, 600))
def test_round_trip_keeps_the_meaning(config: dict[str, Any], max_num_seqs: int) -> None:
    try:
        expected = meaning(config, max_num_seqs)
    except ValueError:
        expected = []
    try:
        first = from_vllm(parse_object(json.dumps(config)))
    except ConvertError:
        assert expected == [], "refused, though vLLM takes it"
        return
    assert expected != [], "taken, though vLLM refuses it"
    again = to_vllm(first.ranges, first.speculative).for_vllm()
    assert meaning(json.loads(json.dumps(again)), max_num_seqs) == expected
    assert {k: v for k, v in again.items() if k != TABLE_KEY} == {k: v for k, v in config.items() if k != TABLE_KEY}


@settings(max_examples=100)
@given(configs())
def test_second_conversion_changes_nothing_and_has_nothing_to_say(config: dict[str, Any]) -> None:
    try:
        first = from_vllm(config)
    except ConvertError:
        return
    second = from_vllm(first.for_vllm())
    assert (second.ranges, second.speculative) == (first.ranges, first.speculative)
    assert [n for n in second.notes if "never speculates" not in n.message] == []


@settings(max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_any_table_is_converted_or_refused(value: Any) -> None:
    """Never anything but a Conversion or a ConvertError."""
    with contextlib.suppress(ConvertError):
        from_vllm({"method": "ngram", "num_speculative_tokens": 3, TABLE_KEY: value})


@settings(max_examples=200)
@given(st.text(alphabet="{}[]\":,\\'$() abcK0123456789-*&", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ConvertError):
        assert parse_object(text) == json.loads(text)


def test_python_paths_are_vllms() -> None:
    """The function of vLLM itself, cut out of its source."""
    source = vllm_source.function(SPECULATIVE_FILE, "_is_custom_proposer_path")
    source.decorator_list = []
    scope: dict[str, Any] = {}
    exec(compile(ast.Module([source], []), "vllm", "exec"), scope)
    for model in ("pkg.Cls", "gpt.small", "Qwen2.5", "acme/x.y", "ngram", "a.b.C", ".x", "a..b", "http://a.b"):
        assert is_python_path(model) == scope["_is_custom_proposer_path"](model), model


def test_names_are_looked_for_in_vllms_order() -> None:
    """Each name that vLLM looks for in the drafter's path, in its order."""
    source = vllm_source.function(SPECULATIVE_FILE, "__post_init__")
    found = [
        str(node.left.value)
        for node in ast.walk(source)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Constant)
        and "draft_model_config.model.lower()" in ast.unparse(node)
    ]
    assert sorted(found) == sorted(["eagle-", "eagle3", "dflash", "dspark"])
    assert by_model_name("acme/EAGLE-eagle3-dflash") == "eagle"
    assert by_model_name("acme/eagle3-dflash-dspark") == "eagle3"


def test_default_of_suffix_is_vllms() -> None:
    tree = ast.parse((vllm_source.root() / SPECULATIVE_FILE).read_text())
    (default,) = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "suffix_decoding_max_tree_depth"
    ]
    assert default is not None
    assert ast.literal_eval(default) == SUFFIX_TOKENS
