"""The support table itself: per vLLM series, method and model runner what a K below the maximum does, and how we know.

Pure data, read from the sources of vLLM: `vllm/config/{vllm,speculative}.py`, `vllm/v1/spec_decode` and
`vllm/v1/worker/gpu_model_runner.py` for model runner V1, `vllm/v1/worker/gpu` for V2. `support` judges by it, and
tools/generate_methods.py prints it. A row is proven by a test that runs the real engine, or says why it is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Allowed(Enum):
    """Which K may be scheduled."""

    ALL = "every K from 0 to the maximum"
    POSITIVE = "every K from 1 to the maximum"
    ENDS = "0 and the maximum"
    MAXIMUM = "the maximum only"
    ONE = "1 only, which is the maximum too"
    NONE = "nothing"


class Fault(Enum):
    """What vLLM does by itself at a K that is not allowed."""

    NOTHING = ""
    CRASH = "the engine dies"
    CORRUPTION = "crash, or drafts of the wrong request"
    IGNORED = "K is ignored"
    NO_START = "no engine starts"


@dataclass(frozen=True)
class Row:
    """One method on one model runner.

    `reason` says why not every K is allowed, for the person who asked for it. `verify_only`: a smaller K saves
    verification, the drafter still drafts the maximum. `source` is the place in vLLM, below the package, and the
    numbers of its issues. `proof` is the test that runs it on the real engine; where there is none, `gap` says why.
    """

    allowed: Allowed
    source: str
    reason: str = ""
    fault: Fault = Fault.NOTHING
    verify_only: bool = False
    proof: str = ""
    gap: str = ""


NO_GPU: Final = "needs a GPU: V2 runs on Triton, which the CPU build of vLLM has not"
HONOURED_TEST: Final = "tests/runtime/test_methods_honoured.py"
REFUSED_TEST: Final = "tests/runtime/test_methods_refused.py"

_BASE: Final = "v1/spec_decode/llm_base_proposer.py: SpecDecodeBaseProposer.propose"
_AUTOREGRESSIVE: Final = "v1/worker/gpu/spec_decode/target_dependent_ar/speculator.py: propose (#51510, #53416)"
_ONLY_V1: Final = "config/vllm.py: VllmConfig._get_v2_model_runner_unsupported_features"
_V1_RUNNER: Final = "v1/worker/gpu_model_runner.py: GPUModelRunner.propose_draft_token_ids"


def _honoured(source: str, proof: str = HONOURED_TEST) -> Row:
    return Row(Allowed.ALL, source, proof=proof)


def _unrun(source: str, gap: str = NO_GPU) -> Row:
    return Row(Allowed.ALL, source, gap=gap)


def _verify_only(path: str, issues: str = "#51575, #52548") -> Row:
    source = f"v1/worker/gpu/spec_decode/{path}/speculator.py: propose ({issues})"
    return Row(Allowed.ALL, source, verify_only=True, gap=NO_GPU)


def _only_v1(method: str) -> Row:
    reason = f"vLLM has {method} on model runner V1 only; set engine.modelRunner to Auto or V1"
    return Row(Allowed.NONE, _ONLY_V1, reason, Fault.NO_START, gap=NO_GPU)


def _fixed(method: str, source: str, proof: str = REFUSED_TEST, instead: str = "", gap: str = "") -> Row:
    reason = f"on model runner V1 {method} stops the engine at any other K than its maximum{instead}"
    return Row(Allowed.MAXIMUM, source, reason, Fault.CRASH, proof=proof, gap=gap)


_GONE: Final = Row(
    Allowed.NONE,
    f"{_V1_RUNNER} (no branch for it)",
    "vLLM 0.32 has no proposer for mlp_speculator any more; no engine would start",
    Fault.NO_START,
    gap="nothing to run: the proposer is gone",
)
_ONE_TOKEN: Final = "extract_hidden_states works with K=1 only"
_HIDDEN_V1: Final = Row(
    Allowed.ONE,
    "v1/spec_decode/extract_hidden_states.py: ExtractHiddenStatesProposer.propose",
    _ONE_TOKEN,
    Fault.CRASH,
    proof=REFUSED_TEST,
)
_HIDDEN_V2: Final = Row(
    Allowed.ONE, "v1/worker/gpu/spec_decode/extract_hidden_states.py: __init__", _ONE_TOKEN, Fault.NO_START, gap=NO_GPU
)

PARALLEL: Final = "parallel drafting"
MULTI_MODULE_MTP: Final = "mtp, several modules"
STEP3P5_MTP: Final = "mtp of Step-3.5"

Rows = Mapping[str, tuple[Row, Row]]
"""Method, or one of the three names above -> its row on V1 and its row on V2."""

_ROWS_0_32: Final[Rows] = {
    "eagle": (_honoured(_BASE), _unrun(_AUTOREGRESSIVE)),
    "eagle3": (_honoured(_BASE), _unrun(_AUTOREGRESSIVE)),
    "mtp": (_honoured(_BASE), _unrun(_AUTOREGRESSIVE)),
    MULTI_MODULE_MTP: (
        _honoured(f"{_BASE} (it runs the first module only)"),
        _verify_only("multi_module_mtp", "#51575"),
    ),
    STEP3P5_MTP: (
        Row(
            Allowed.POSITIVE,
            "v1/spec_decode/step3p5.py: Step3p5MTPProposer.propose",
            "the step3p5 drafter returns one token even when none is asked for",
            Fault.IGNORED,
            gap="needs a Step-3.5 checkpoint",
        ),
        _unrun(_AUTOREGRESSIVE),
    ),
    "draft_model": (_honoured(_BASE), _verify_only("standalone_ar")),
    "dflash": (_honoured("v1/spec_decode/dflash.py: DFlashProposer.set_inputs_first_pass"), _verify_only("dflash")),
    "dspark": (
        Row(
            Allowed.NONE,
            "config/vllm.py: VllmConfig._get_v1_model_runner_unsupported_features",
            "vLLM has dspark on model runner V2 only; set engine.modelRunner to Auto or V2",
            Fault.NO_START,
            gap=NO_GPU,
        ),
        _verify_only("dspark", "#47737"),
    ),
    "ngram": (
        _honoured("v1/spec_decode/ngram_proposer.py: NgramProposer.propose", "tests/runtime/test_engine.py"),
        _verify_only("ngram", "#52548"),
    ),
    "ngram_gpu": (
        _fixed(
            "ngram_gpu",
            "v1/spec_decode/ngram_proposer_gpu.py: NgramProposerGPU.propose",
            instead="; ngram takes every K, and so does ngram_gpu on V2",
        ),
        _verify_only("ngram", "#52548"),
    ),
    "suffix": (
        _fixed("suffix", "v1/spec_decode/suffix_decoding.py: SuffixDecodingProposer.propose"),
        _only_v1("suffix"),
    ),
    "medusa": (_fixed("medusa", "v1/spec_decode/medusa.py: MedusaProposer.propose"), _only_v1("medusa")),
    "custom_class": (
        Row(
            Allowed.MAXIMUM,
            _V1_RUNNER,
            "vLLM does not tell a custom proposer which K is wanted, so it drafts the maximum always",
            Fault.IGNORED,
            proof=REFUSED_TEST,
        ),
        _only_v1("custom_class"),
    ),
    "mlp_speculator": (_GONE, _GONE),
    "extract_hidden_states": (_HIDDEN_V1, _HIDDEN_V2),
    PARALLEL: (
        Row(
            Allowed.ENDS,
            f"{_BASE} and set_inputs_first_pass",
            "parallel drafting on model runner V1 crashes or mixes up the drafts of different requests at a K between "
            "0 and the maximum",
            Fault.CORRUPTION,
            proof=REFUSED_TEST,
        ),
        Row(
            Allowed.NONE,
            _ONLY_V1,
            "vLLM has parallel drafting on model runner V1 only, but for dflash and dspark",
            Fault.NO_START,
            gap=NO_GPU,
        ),
    ),
}

_UNREAD: Final = "read in its wheel, not run: there is no CPU build of it, and the plugin is off in it"


def _removed(method: str) -> Row:
    reason = f"vLLM 0.33 has no method {method} any more"
    return Row(Allowed.NONE, "config/speculative.py: SpeculativeMethod", reason, Fault.NO_START, gap=_UNREAD)


_ROWS_0_33: Final[Rows] = {
    method: (replace(v1, proof="", gap=_UNREAD), replace(v2, proof="", gap=_UNREAD))
    for method, (v1, v2) in _ROWS_0_32.items()
} | {method: (_removed(method), _removed(method)) for method in ("medusa", "mlp_speculator")}

ROWS: Final[Mapping[str, Rows]] = {"0.32": _ROWS_0_32, "0.33": _ROWS_0_33}
"""vLLM series -> its rows. `compat.SUPPORTED` says in which of them the schedule can change at all."""

CHANGES: Final[Mapping[str, str]] = {
    "0.33": """
Every other row is as above. vLLM now drops a start-up table by itself on V1 for suffix, ngram_gpu, custom_class and
extract_hidden_states (`config/vllm.py: VllmConfig._maybe_disable_dynamic_sd_for_v1`), so that none of them dies of one;
their proposers still bear no K below the maximum. On V2 dflash spares the drafter at K=0, and a step in which no
request can use drafts has K=0 whatever the scheduler chose (`SchedulerOutput.skip_drafts`). All hook points that the
plugin needs are there.
"""
}
"""What a reader must know of a series that is not supported, besides its rows. Markdown."""
