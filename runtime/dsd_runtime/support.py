"""Which K a speculative method can honour on which model runner, and which engines may change K at all.

One answer for all sides: the operator judges what the resource asks for (and its CRD rules are generated from here),
the plugin judges what vLLM resolved, which can differ. The rows are those of `support_rows`, the rules about the whole
engine those of `topology`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from dsd_runtime.schedule import default_prepared_tokens
from dsd_runtime.support_rows import MULTI_MODULE_MTP, PARALLEL, ROWS, STEP3P5_MTP, Allowed, Fault, Row
from dsd_runtime.vllm_options import METHODS, MTP_ALIASES

ModelRunner = Literal["Auto", "V1", "V2"]
ModelUse = Literal["required", "optional", "forbidden"]
Variant = Literal["multi_module_mtp", "step3p5_mtp"]
"""What only a checkpoint's config.json tells about an mtp drafter; the plugin knows it, the operator does not."""

MODEL_RUNNERS: Final[tuple[ModelRunner, ...]] = get_args(ModelRunner)

SERIES: Final = "0.32"
"""The series of vLLM (major.minor) that the operator's rules are made for: that of its default image."""

_WITHOUT_MODEL: Final = ("ngram", "ngram_gpu", "suffix", "extract_hidden_states")

MODEL_USE: Final[Mapping[str, ModelUse]] = {
    method: "forbidden" if method in _WITHOUT_MODEL else "optional" if method in ("mtp", "dspark") else "required"
    for method in METHODS
}
"""Whether the drafter of a method is a model of its own (`SpeculativeConfig.__post_init__`)."""

PROMPT_LOOKUP_METHODS: Final = ("ngram", "ngram_gpu")
"""Methods that read prompt_lookup_min and prompt_lookup_max."""

PARALLEL_METHODS: Final = ("eagle", "eagle3", "mtp", "draft_model")
"""Methods whose drafter may draft in parallel (PARD, P-EAGLE); dflash and dspark always do, which is in their rows."""


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


_NO_PARALLEL: Final = Row(
    Allowed.NONE,
    "config/speculative.py: SpeculativeConfig",
    f"parallel drafting works with {', '.join(PARALLEL_METHODS)} only; remove parallel_drafting",
    Fault.NO_START,
)
_V1_VOCABULARIES: Final = Row(
    Allowed.NONE,
    "config/vllm.py: VllmConfig._get_v2_model_runner_unsupported_features",
    "vLLM has heterogeneous vocabularies on model runner V1 only",
    Fault.NO_START,
)
_VARIANTS: Final[Mapping[Variant, str]] = {"multi_module_mtp": MULTI_MODULE_MTP, "step3p5_mtp": STEP3P5_MTP}


def judge(
    method: str,
    model_runner: ModelRunner,
    max_tokens: int,
    *,
    parallel_drafting: bool = False,
    heterogeneous_vocab: bool = False,
    variant: Variant | None = None,
    series: str = SERIES,
) -> Verdict:
    """Judge every K from 0 to `max_tokens` (the K the engine was or will be started with).

    `Auto` means that the runner is not known yet: a K is allowed only where every runner that vLLM could pick allows
    it, and the verdict is `verify_only` if any of them is. An unknown method, or an unknown series of vLLM, allows
    nothing.
    """
    rows = _rows(method, parallel_drafting, variant, series)
    if isinstance(rows, str):
        return Verdict((), False, dict.fromkeys(range(max_tokens + 1), rows))
    chosen = _candidates(rows, model_runner, heterogeneous_vocab)
    refused: dict[int, str] = {}
    for row in chosen:
        refused |= {k: row.reason for k in range(max_tokens + 1) if not _allows(row, k, max_tokens)}
    allowed = tuple(k for k in range(max_tokens + 1) if k not in refused)
    return Verdict(allowed, any(row.verify_only for row in chosen), refused, _notes(chosen))


def prepared_tokens(verdict: Verdict, max_tokens: int) -> tuple[int, ...]:
    """The default K values to prepare at start: those of `default_prepared_tokens` that are allowed."""
    return tuple(k for k in default_prepared_tokens(max_tokens) if k in verdict.allowed)


def _rows(method: str, parallel_drafting: bool, variant: Variant | None, series: str) -> tuple[Row, Row] | str:
    """The rows on V1 and V2, or why there are none."""
    rows = ROWS.get(series)
    if rows is None:
        return f"nothing is known of vLLM {series}; known: {', '.join(ROWS)}"
    if method not in METHODS:
        return _unknown(method)
    if parallel_drafting and method not in ("dflash", "dspark"):
        return rows[PARALLEL] if method in PARALLEL_METHODS else (_NO_PARALLEL, _NO_PARALLEL)
    return rows[_VARIANTS[variant] if method == "mtp" and variant is not None else method]


def _candidates(rows: tuple[Row, Row], model_runner: ModelRunner, heterogeneous_vocab: bool) -> tuple[Row, ...]:
    """The rows that can come true.

    vLLM's own choice (`VllmConfig.use_v2_model_runner`) falls back to V1 where V2 lacks a feature, and takes V2 where
    only V2 has it.
    """
    v1, v2 = rows
    if model_runner == "V1":
        return (v1,)
    if model_runner == "V2":
        return (_V1_VOCABULARIES if heterogeneous_vocab else v2,)
    if heterogeneous_vocab or v2.allowed is Allowed.NONE:
        return (v1,)
    if v1.allowed is Allowed.NONE:
        return (v2,)
    return rows


def _allows(row: Row, k: int, max_tokens: int) -> bool:
    return {
        Allowed.ALL: True,
        Allowed.POSITIVE: k >= 1,
        Allowed.ENDS: k in (0, max_tokens),
        Allowed.MAXIMUM: k == max_tokens,
        Allowed.ONE: k == max_tokens == 1,
        Allowed.NONE: False,
    }[row.allowed]


def _notes(rows: tuple[Row, ...]) -> tuple[str, ...]:
    notes = []
    if not all(row.proof for row in rows):
        notes.append("not verified: judged from vLLM's source, this project has not run it")
    if any(row.verify_only for row in rows):
        notes.append("a smaller K saves verification only, the drafter still drafts the maximum")
    return tuple(notes)


def _unknown(method: str) -> str:
    if method in MTP_ALIASES:
        return f"{method} is vLLM's old name of mtp; write mtp"
    return f"vLLM has no method {method!r}; it has {', '.join(METHODS)}"
