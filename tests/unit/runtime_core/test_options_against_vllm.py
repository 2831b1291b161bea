"""Arguments in random spellings: what vLLM's own parser understands, we understand; what it refuses, we refuse.

Marked `engine` because building that parser means importing vLLM.
"""

import re

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from dsd_runtime import owned
from dsd_runtime.options import SPELLINGS, owned_problems, prefix_pattern, resolve
from dsd_runtime.owned import OWNED_GROUPS, OWNED_OPTIONS
from dsd_runtime.vllm_options import OPTIONS
from tests.unit.runtime_core import serve_parser
from tools import generate_option_table

pytestmark = pytest.mark.engine

BY_VALUE = {owned.MAX_MODEL_LEN, owned.EXECUTOR_BACKEND}
"""Options of which some values are allowed."""

JSON_OPTIONS = sorted(name for name in OPTIONS if name.endswith("-config"))

settings.register_profile(
    "parser", max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
THOROUGH = settings.get_profile("parser")


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, list[str]]:
    """(canonical option, items that may name it): an alias, cut short, with underscores, joined or apart."""
    spelling = draw(st.sampled_from(sorted(SPELLINGS)))
    name = spelling[: draw(st.one_of(st.just(len(spelling)), st.integers(2, len(spelling))))]
    canonical = SPELLINGS.get(name, SPELLINGS[spelling])  # cut short, it may be the whole name of another option
    if name.startswith("--"):
        dashes = [draw(st.sampled_from("-_")) if c == "-" else c for c in name[2:]]
        name = "--" + "".join(dashes)
    value = serve_parser.good_value(canonical) if canonical != "--help" else None
    if value is None:
        return canonical, [name]
    return canonical, draw(st.sampled_from(([name, value], [f"{name}={value}"], [f"{name}{value}"])))


@st.composite
def dotted(draw: st.DrawFn) -> tuple[str, list[str]]:
    """(canonical option, items): a key inside a JSON option."""
    canonical = draw(st.sampled_from(JSON_OPTIONS))
    spelling = draw(st.sampled_from([s for s, c in SPELLINGS.items() if c == canonical]))
    name = spelling.replace("-", draw(st.sampled_from("-_"))) if spelling.startswith("--") else spelling
    name = ("--" + name[2:] if spelling.startswith("--") else name) + draw(st.sampled_from((".a", ".a_b.c", ".a+")))
    return canonical, draw(st.sampled_from(([name, "1"], [f"{name}=1"])))


@settings(THOROUGH)
@given(spellings())
@example(("--speculative-config", ["-sc={}"]))
@example(("--spec-tokens", ["--spec_tok", "1"]))
@example(("--nnodes", ["-n1"]))
@example(("--data-parallel-size", ["-dp", "1"]))
def test_owned_options_are_refused_in_every_spelling_the_parser_takes(case: tuple[str, list[str]]) -> None:
    _, items = case
    named = serve_parser.named_by(items)
    assume(named)
    assert named is not None
    if named & set(OWNED_OPTIONS):
        assert owned_problems(items)
    elif not named & BY_VALUE:
        assert owned_problems(items) == []


@settings(THOROUGH)
@given(spellings())
def test_what_the_parser_refuses_is_refused(case: tuple[str, list[str]]) -> None:
    """No argument that stops vLLM at its start gets into a pod."""
    _, items = case
    assume(serve_parser.named_by(items) is None)
    assert owned_problems(items)


@settings(THOROUGH)
@given(spellings())
def test_resolves_to_the_option_the_parser_finds(case: tuple[str, list[str]]) -> None:
    _, items = case
    named = serve_parser.named_by(items)
    assume(named)
    option = resolve(items[0])
    assert option is not None
    assert {option.canonical} == named


@settings(THOROUGH)
@given(dotted())
def test_dotted_keys_reach_the_same_option(case: tuple[str, list[str]]) -> None:
    canonical, items = case
    named = serve_parser.named_by(items)
    assume(named)
    assert named == {canonical}
    assert bool(owned_problems(items)) == (canonical in OWNED_OPTIONS)


@settings(THOROUGH)
@given(st.lists(spellings(), min_size=2, max_size=4))
def test_a_whole_line_is_walked_as_the_parser_walks_it(cases: list[tuple[str, list[str]]]) -> None:
    items = [item for _, part in cases for item in part]
    named = serve_parser.named_by(items)
    if named is None or named & set(OWNED_OPTIONS):
        assert owned_problems(items)
    elif not named & BY_VALUE:
        assert owned_problems(items) == []


@settings(THOROUGH)
@given(spellings())
def test_admission_patterns_match_what_the_parser_takes(case: tuple[str, list[str]]) -> None:
    """The CRD's regular expressions refuse every clear spelling of an owned option, and no other option."""
    _, items = case
    named = serve_parser.named_by(items)
    assume(named)
    assert named is not None
    matching = {o for group in OWNED_GROUPS if re.match(prefix_pattern(group.options), items[0]) for o in group.options}
    assert named <= matching if named & set(OWNED_OPTIONS) else not matching


@pytest.mark.parametrize("items", [
    ["-sc", "{}"], ["-sc={}"], ["--speculative_config={}"], ["--speculative", "{}"], ["--spec-tok", "3"],
    ["--tensor-parallel", "2"], ["-tp=2"], ["-dp", "4"], ["--max_model_len", "4096"], ["--spec-method", "eagle3"],
    ["--spec-model", "acme/h"], ["--model", "acme/x"], ["-sc.method", "mtp"], ["--config=/etc/vllm.yaml"],
], ids=" ".join)  # fmt: skip
def test_spellings_from_the_field_reach_vllm_and_are_refused(items: list[str]) -> None:
    assert serve_parser.named_by(items)
    assert owned_problems(items)


@pytest.mark.parametrize("items", [["-tp2"], ["--data-parallel", "4"], ["--max-num-batched-tokens 8192"], *(
    [option] for option in owned.DEAD_OPTIONS
)], ids=" ".join)  # fmt: skip
def test_what_vllm_no_longer_takes_is_refused(items: list[str]) -> None:
    assert serve_parser.named_by(items) is None
    assert owned_problems(items)


def test_table_fits_the_installed_vllm() -> None:
    assert generate_option_table.TARGET.read_text() == generate_option_table.render()
