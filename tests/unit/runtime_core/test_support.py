"""The method x runner table: its shape, its rows, and that the vLLM it was read from still says so."""

import ast
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_runtime import compat, topology
from dsd_runtime.owned import OWNED_OPTIONS
from dsd_runtime.support import (
    MODEL_RUNNERS,
    MODEL_USE,
    PARALLEL_METHODS,
    SERIES,
    ModelRunner,
    Variant,
    Verdict,
    judge,
    prepared_tokens,
)
from dsd_runtime.support_rows import CHANGES, ROWS, Allowed, Fault, Row
from dsd_runtime.topology import TOPOLOGIES, Topology
from dsd_runtime.vllm_options import METHODS, MTP_ALIASES, VLLM_VERSION
from tests.unit.runtime_core import vllm_source
from tools import generate_methods
from tools.cluster.paths import REPOSITORY

RUNNERS = st.sampled_from(MODEL_RUNNERS)
SWITCHES = st.fixed_dictionaries(
    {
        "parallel_drafting": st.booleans(),
        "heterogeneous_vocab": st.booleans(),
        "variant": st.sampled_from((None, "multi_module_mtp", "step3p5_mtp")),
    }
)


@given(st.sampled_from((*METHODS, *MTP_ALIASES, "EAGLE3", "")), RUNNERS, st.integers(1, 128), SWITCHES)
def test_every_k_is_either_allowed_or_has_a_reason(
    method: str, runner: ModelRunner, maximum: int, switches: dict[str, Any]
) -> None:
    verdict = judge(method, runner, maximum, **switches)
    assert sorted([*verdict.allowed, *verdict.reasons]) == list(range(maximum + 1))
    assert all(verdict.reasons.values())
    assert list(verdict.allowed) == sorted(verdict.allowed)


@given(st.sampled_from(METHODS), st.integers(1, 16), SWITCHES)
def test_auto_allows_only_what_some_runner_allows(method: str, maximum: int, switches: dict[str, Any]) -> None:
    auto, v1, v2 = (judge(method, runner, maximum, **switches) for runner in ("Auto", "V1", "V2"))
    assert set(v1.allowed) & set(v2.allowed) <= set(auto.allowed) <= set(v1.allowed) | set(v2.allowed)


ALL, MAXIMUM, NONE = (0, 1, 2, 3), (3,), ()


@pytest.mark.parametrize(
    ("method", "v1", "v2", "verify_only_on_v2"),
    [
        ("eagle", ALL, ALL, False),
        ("eagle3", ALL, ALL, False),
        ("mtp", ALL, ALL, False),
        ("draft_model", ALL, ALL, True),
        ("dflash", ALL, ALL, True),
        ("dspark", NONE, ALL, True),
        ("ngram", ALL, ALL, True),
        ("ngram_gpu", MAXIMUM, ALL, True),
        ("suffix", MAXIMUM, NONE, False),
        ("medusa", MAXIMUM, NONE, False),
        ("custom_class", MAXIMUM, NONE, False),
        ("mlp_speculator", NONE, NONE, False),
        ("extract_hidden_states", NONE, NONE, False),
    ],
)
def test_rows(method: str, v1: tuple[int, ...], v2: tuple[int, ...], verify_only_on_v2: bool) -> None:
    assert judge(method, "V1", 3).allowed == v1
    assert judge(method, "V2", 3).allowed == v2
    assert not judge(method, "V1", 3).verify_only
    assert judge(method, "V2", 3).verify_only == verify_only_on_v2


def test_every_method_of_vllm_has_rows_and_a_model_rule() -> None:
    assert set(MODEL_USE) == set(METHODS)
    assert all(judge(m, r, 3).reasons.get(0) is None or "no method" not in judge(m, r, 3).reasons[0]
               for m in METHODS for r in MODEL_RUNNERS)  # fmt: skip


def test_hidden_states_work_with_one_token() -> None:
    assert judge("extract_hidden_states", "V1", 1).allowed == (1,)


@pytest.mark.parametrize("method", PARALLEL_METHODS)
def test_parallel_drafting_allows_zero_and_the_maximum_on_v1_only(method: str) -> None:
    assert judge(method, "V1", 3, parallel_drafting=True).allowed == (0, 3)
    assert judge(method, "Auto", 3, parallel_drafting=True).allowed == (0, 3)
    assert judge(method, "V2", 3, parallel_drafting=True).allowed == NONE


@pytest.mark.parametrize("method", ["dflash", "dspark"])
def test_natively_parallel_methods_keep_their_rows(method: str) -> None:
    assert judge(method, "V2", 3, parallel_drafting=True) == judge(method, "V2", 3)


@pytest.mark.parametrize(
    ("variant", "runner", "allowed", "verify_only"),
    [
        ("multi_module_mtp", "V1", ALL, False),
        ("multi_module_mtp", "V2", ALL, True),
        ("step3p5_mtp", "V1", (1, 2, 3), False),
        ("step3p5_mtp", "V2", ALL, False),
    ],
)
def test_what_only_the_checkpoint_tells(
    variant: Variant, runner: ModelRunner, allowed: tuple[int, ...], verify_only: bool
) -> None:
    verdict = judge("mtp", runner, 3, variant=variant)
    assert (verdict.allowed, verdict.verify_only) == (allowed, verify_only)


def test_heterogeneous_vocabularies_need_v1() -> None:
    assert judge("draft_model", "V2", 3, heterogeneous_vocab=True).allowed == NONE
    assert not judge("draft_model", "Auto", 3, heterogeneous_vocab=True).verify_only


def test_unknown_methods_say_what_to_write() -> None:
    assert "write mtp" in judge("deepseek_mtp", "Auto", 1).reasons[1]
    assert "eagle3" in judge("EAGLE3", "Auto", 1).reasons[1]


EVERY_ROW = [
    pytest.param(row, id=f"{series} {method} {runner}")
    for series, rows in ROWS.items()
    for method, pair in rows.items()
    for runner, row in zip(("V1", "V2"), pair, strict=True)
]


@pytest.mark.parametrize("row", EVERY_ROW)
def test_row_is_proven_by_a_test_or_says_why_not(row: Row) -> None:
    assert bool(row.proof) != bool(row.gap)
    assert row.source
    assert (row.allowed is Allowed.ALL) == (not row.reason) == (row.fault is Fault.NOTHING)


def test_nothing_is_proven_that_cannot_run_here() -> None:
    """The CPU build of vLLM has model runner V1 only, and there is none of 0.33."""
    assert not any(v2.proof for rows in ROWS.values() for _, v2 in rows.values())
    assert not any(v1.proof for v1, _ in ROWS["0.33"].values())


@pytest.mark.parametrize("proof", sorted({r.proof for rows in ROWS.values() for pair in rows.values() for r in pair}
                                         | {t.proof for t in TOPOLOGIES}))  # fmt: skip
def test_proof_is_a_test_on_the_real_engine(proof: str) -> None:
    assert proof == "" or "mark.engine" in (REPOSITORY / proof).read_text()


def test_verdict_says_what_nobody_ran() -> None:
    verified = {m for m in METHODS if not any("not verified" in n for n in judge(m, "V1", 3).notes)}
    assert {"ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "medusa", "suffix"} <= verified
    assert all(any("not verified" in n for n in judge(m, "V2", 3).notes) for m in METHODS)


def test_operator_judges_by_the_series_it_runs_and_others_are_off() -> None:
    """The series of the options table is that of the default image."""
    assert compat.series_of(VLLM_VERSION) == SERIES
    assert SERIES in compat.SUPPORTED
    assert set(compat.SUPPORTED) <= set(ROWS)
    assert set(CHANGES) == set(ROWS) - set(compat.SUPPORTED)


def test_series_decides() -> None:
    assert judge("medusa", "V1", 3, series="0.32").allowed == MAXIMUM
    assert "0.33 has no method medusa" in judge("medusa", "V1", 3, series="0.33").reasons[3]
    unknown = judge("eagle", "V1", 3, series="0.99")
    assert (unknown.allowed, unknown.reasons[0]) == (NONE, "nothing is known of vLLM 0.99; known: 0.32, 0.33")


@pytest.mark.parametrize(
    ("sizes", "moe", "refused"),
    [((1, 1), True, False), ((1, 2), False, False), ((1, 2), True, True), ((2, 1), False, True), ((2, 2), True, True)],
)
def test_topology(sizes: tuple[int, int], moe: bool, refused: bool) -> None:
    assert (topology.refusal(*sizes, mixture_of_experts=moe, hybrid_on_cpu=False) is not None) == refused


@pytest.mark.parametrize(
    ("option", "kind"),
    [("--pipeline-parallel-size", topology.PIPELINE_PARALLEL), ("--data-parallel-size", topology.MOE_DATA_PARALLEL)],
)
def test_admission_refuses_what_the_engine_would(option: str, kind: Topology) -> None:
    assert kind.reason.rpartition(": ")[2] in OWNED_OPTIONS[option]
    assert option in kind.admission


def test_prepared_tokens_are_the_default_as_far_as_allowed() -> None:
    assert prepared_tokens(judge("eagle", "V1", 7), 7) == (0, 1, 4, 7)
    assert prepared_tokens(judge("suffix", "V1", 7), 7) == (7,)
    assert prepared_tokens(Verdict((), False), 7) == ()


def test_reference_page_fits_the_table() -> None:
    assert generate_methods.TARGET.read_text() == generate_methods.render()


def _strings(node: ast.AST) -> Iterator[str]:
    yield from (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


@pytest.mark.parametrize("runner", ["V1", "V2"])
def test_methods_a_runner_lacks_are_those_vllm_names(runner: ModelRunner) -> None:
    """`VllmConfig._get_v1_…` and `_get_v2_model_runner_unsupported_features` compare the method with literals."""
    name = f"_get_{runner.lower()}_model_runner_unsupported_features"
    node = vllm_source.function("config/vllm.py", name)
    named = {text for text in _strings(node) if text in METHODS} - {"dflash"}
    if runner == "V2":
        named -= {"dspark"}  # named there only as the method that may draft in parallel
    gone = {"mlp_speculator"} if runner == "V1" else set()
    lacking = {m for m in METHODS if judge(m, runner, 3).allowed == NONE} - {"extract_hidden_states"}
    assert lacking == named | gone


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("v1/spec_decode/suffix_decoding.py", "suffix"),
        ("v1/spec_decode/medusa.py", "medusa"),
        ("v1/spec_decode/ngram_proposer_gpu.py", "ngram_gpu"),
    ],
)
def test_proposers_that_stop_the_engine_still_assert_the_maximum(path: str, method: str) -> None:
    source = (vllm_source.root() / path).read_text()
    assert "assert num_speculative_tokens == self." in source
    assert judge(method, "V1", 3).allowed == MAXIMUM


def test_v1_has_no_proposer_for_mlp_speculator() -> None:
    assert "mlp_speculator" not in (vllm_source.root() / "v1/worker/gpu_model_runner.py").read_text()
