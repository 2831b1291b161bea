"""Which K a speculative method can honour on which model runner.

One table for both sides: the operator judges what the resource asks for (and its CRD rules are generated from here),
the plugin judges what vLLM resolved, which can differ. Read from the source of vLLM 0.32.0 (`vllm/v1/spec_decode`,
`vllm/v1/worker/gpu/spec_decode`, `vllm/config/vllm.py`, `vllm/config/speculative.py`); rows that this project has not
run say so in `Verdict.notes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, get_args

from dsd_runtime.schedule import default_prepared_tokens
from dsd_runtime.vllm_options import METHODS, MTP_ALIASES

ModelRunner = Literal["Auto", "V1", "V2"]
ModelUse = Literal["required", "optional", "forbidden"]
Variant = Literal["multi_module_mtp", "step3p5_mtp"]
"""What only a checkpoint's config.json tells about an mtp drafter; the plugin knows it, the operator does not."""

MODEL_RUNNERS: Final[tuple[ModelRunner, ...]] = get_args(ModelRunner)

_WITHOUT_MODEL: Final = ("ngram", "ngram_gpu", "suffix", "extract_hidden_states")

MODEL_USE: Final[Mapping[str, ModelUse]] = {
    method: "forbidden" if method in _WITHOUT_MODEL else "optional" if method in ("mtp", "dspark") else "required"
    for method in METHODS
}
"""Whether the drafter of a method is a model of its own (`SpeculativeConfig.__post_init__`)."""

PROMPT_LOOKUP_METHODS: Final = ("ngram", "ngram_gpu")
"""Methods that read prompt_lookup_min and prompt_lookup_max."""


class _Allowed(Enum):
    ALL = "every K from 0 to the maximum"
    POSITIVE = "every K from 1 to the maximum"
    MAXIMUM = "only the maximum"
    ONE = "only 1, which is the maximum too"
    NONE = "nothing"


@dataclass(frozen=True)
class _Row:
    """One method on one runner."""

    allowed: _Allowed
    reason: str = ""
    """Why not every K is allowed."""
    verify_only: bool = False
    run: bool = False
    """True: this project's end-to-end tests change K on it and compare outputs."""


@dataclass(frozen=True)
class Verdict:
    """What `judge` found: the K values that may be scheduled, and for every other K up to the maximum the reason.

    `verify_only`: the engine verifies fewer tokens for a smaller K, but the drafter still pays for the maximum.
    `notes` is for people: what is not verified, what depends on the runner that vLLM picks.
    """

    allowed: tuple[int, ...]
    verify_only: bool
    reasons: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


_HONOURED: Final = _Row(_Allowed.ALL)
_HONOURED_AND_RUN: Final = _Row(_Allowed.ALL, run=True)
_VERIFY_ONLY: Final = _Row(_Allowed.ALL, verify_only=True)


def _only_v1(method: str) -> _Row:
    return _Row(_Allowed.NONE, f"vLLM has {method} on model runner V1 only; set engine.modelRunner to Auto or V1")


def _fixed(method: str, instead: str = "") -> _Row:
    return _Row(
        _Allowed.MAXIMUM, f"on model runner V1 {method} stops the engine at any other K than its maximum{instead}"
    )


_ROWS: Final[Mapping[str, tuple[_Row, _Row]]] = {
    "eagle": (_HONOURED_AND_RUN, _HONOURED),
    "eagle3": (_HONOURED_AND_RUN, _HONOURED),
    "mtp": (_HONOURED, _HONOURED),
    "draft_model": (_HONOURED_AND_RUN, _VERIFY_ONLY),
    "dflash": (_HONOURED, _VERIFY_ONLY),
    "dspark": (
        _Row(_Allowed.NONE, "vLLM has dspark on model runner V2 only; set engine.modelRunner to Auto or V2"),
        _VERIFY_ONLY,
    ),
    "ngram": (_HONOURED_AND_RUN, _VERIFY_ONLY),
    "ngram_gpu": (_fixed("ngram_gpu", "; ngram takes every K, and so does ngram_gpu on V2"), _VERIFY_ONLY),
    "suffix": (_fixed("suffix"), _only_v1("suffix")),
    "medusa": (_fixed("medusa"), _only_v1("medusa")),
    "custom_class": (
        _Row(
            _Allowed.MAXIMUM, "vLLM does not tell a custom proposer which K is wanted, so it drafts the maximum always"
        ),
        _only_v1("custom_class"),
    ),
    "mlp_speculator": (
        _Row(_Allowed.NONE, "vLLM 0.32 has no proposer for mlp_speculator any more; no engine would start"),
        _Row(_Allowed.NONE, "vLLM 0.32 has no proposer for mlp_speculator any more; no engine would start"),
    ),
    "extract_hidden_states": (
        _Row(_Allowed.ONE, "extract_hidden_states works with K=1 only"),
        _Row(_Allowed.ONE, "extract_hidden_states works with K=1 only"),
    ),
}
"""Method -> its row on V1 and its row on V2."""

_PARALLEL: Final = (
    _Row(
        _Allowed.MAXIMUM,
        "parallel drafting on model runner V1 crashes or mixes up the drafts of different requests when K is below the "
        "maximum, and nobody has run it at 0",
    ),
    _Row(_Allowed.NONE, "vLLM has parallel drafting on model runner V1 only, but for dflash and dspark"),
)
"""PARD and P-EAGLE: the drafter's slots are fixed to the maximum, its result is cut by K."""

PARALLEL_METHODS: Final = ("eagle", "eagle3", "mtp", "draft_model")
"""Methods whose drafter may draft in parallel; dflash and dspark always do, which is in their own rows."""

_NO_PARALLEL: Final = _Row(
    _Allowed.NONE, f"parallel drafting works with {', '.join(PARALLEL_METHODS)} only; remove parallel_drafting"
)

_VARIANTS: Final[Mapping[Variant, tuple[_Row, _Row]]] = {
    "multi_module_mtp": (_HONOURED, _VERIFY_ONLY),
    "step3p5_mtp": (
        _Row(_Allowed.POSITIVE, "the step3p5 drafter returns one token even when none is asked for"),
        _HONOURED,
    ),
}


def judge(
    method: str,
    model_runner: ModelRunner,
    max_tokens: int,
    *,
    parallel_drafting: bool = False,
    heterogeneous_vocab: bool = False,
    variant: Variant | None = None,
) -> Verdict:
    """Judge every K from 0 to `max_tokens` (the K the engine was or will be started with).

    `Auto` means that the runner is not known yet: a K is allowed only where every runner that vLLM could pick allows
    it, and the verdict is `verify_only` if any of them is. An unknown method allows nothing.
    """
    rows = _rows(method, parallel_drafting, variant)
    if rows is None:
        return Verdict((), False, dict.fromkeys(range(max_tokens + 1), _unknown(method)))
    chosen = _candidates(rows, model_runner, heterogeneous_vocab)
    refused: dict[int, str] = {}
    for row in chosen:
        refused |= {k: row.reason for k in range(max_tokens + 1) if not _allows(row, k, max_tokens)}
    allowed = tuple(k for k in range(max_tokens + 1) if k not in refused)
    return Verdict(allowed, any(row.verify_only for row in chosen), refused, _notes(chosen))


def prepared_tokens(verdict: Verdict, max_tokens: int) -> tuple[int, ...]:
    """The default K values to prepare at start: those of `default_prepared_tokens` that are allowed."""
    return tuple(k for k in default_prepared_tokens(max_tokens) if k in verdict.allowed)


def _rows(method: str, parallel_drafting: bool, variant: Variant | None) -> tuple[_Row, _Row] | None:
    if parallel_drafting and method in _ROWS and method not in ("dflash", "dspark"):
        return _PARALLEL if method in PARALLEL_METHODS else (_NO_PARALLEL, _NO_PARALLEL)
    if method == "mtp" and variant is not None:
        return _VARIANTS[variant]
    return _ROWS.get(method)


def _candidates(rows: tuple[_Row, _Row], model_runner: ModelRunner, heterogeneous_vocab: bool) -> tuple[_Row, ...]:
    """The rows that can come true.

    vLLM's own choice (`VllmConfig.use_v2_model_runner`) falls back to V1 where V2 lacks a feature, and takes V2 where
    only V2 has it.
    """
    v1, v2 = rows
    if model_runner == "V1":
        return (v1,)
    if model_runner == "V2":
        if heterogeneous_vocab:
            return (_Row(_Allowed.NONE, "vLLM has heterogeneous vocabularies on model runner V1 only"),)
        return (v2,)
    if heterogeneous_vocab or v2.allowed is _Allowed.NONE:
        return (v1,)
    if v1.allowed is _Allowed.NONE:
        return (v2,)
    return rows


def _allows(row: _Row, k: int, max_tokens: int) -> bool:
    return {
        _Allowed.ALL: True,
        _Allowed.POSITIVE: k >= 1,
        _Allowed.MAXIMUM: k == max_tokens,
        _Allowed.ONE: k == max_tokens == 1,
        _Allowed.NONE: False,
    }[row.allowed]


def _notes(rows: tuple[_Row, ...]) -> tuple[str, ...]:
    notes = []
    if not all(row.run for row in rows):
        notes.append("not verified: judged from vLLM's source, this project has not run it")
    if any(row.verify_only for row in rows):
        notes.append("a smaller K saves verification only, the drafter still drafts the maximum")
    return tuple(notes)


def _unknown(method: str) -> str:
    if method in MTP_ALIASES:
        return f"{method} is vLLM's old name of mtp; write mtp"
    return f"vLLM has no method {method!r}; it has {', '.join(METHODS)}"
