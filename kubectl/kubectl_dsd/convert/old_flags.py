"""Options of older vLLM versions, which the pinned one refuses: what each of them means today.

A command line that still carries them has not run on the pinned version; the conversion is to what it meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_runtime.convert.numbers import whole
from dsd_runtime.options import SPELLINGS
from dsd_runtime.owned import DEAD_OPTIONS
from dsd_runtime.vllm_options import VLLM_VERSION
from kubectl_dsd.convert.report import Report

_SPECULATIVE: Final = {
    "--speculative-model": "model",
    "--num-speculative-tokens": "num_speculative_tokens",
    "--ngram-prompt-lookup-max": "prompt_lookup_max",
    "--ngram-prompt-lookup-min": "prompt_lookup_min",
    "--speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "--speculative-max-model-len": "max_model_len",
    "--speculative-model-quantization": "quantization",
}
"""Old option -> key of the speculative config."""

_NUMBERS: Final = (
    *("num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"),
    *("draft_tensor_parallel_size", "max_model_len"),
)

_SWITCHES: Final = (
    *("--use-v2-block-manager", "--disable-log-requests", "--enable-reasoning", "--worker-use-ray", "--engine-use-ray"),
    *("--disable-logprobs-during-spec-decoding", "--speculative-disable-mqa-scorer", "--multi-step-stream-outputs"),
    "--disable-frontend-multiprocessing",
)
_NO_EFFECT: Final = {
    "--use-v2-block-manager": "there is one block manager now",
    "--disable-log-requests": "requests are not logged unless asked for",
    "--enable-reasoning": "--reasoning-parser alone switches it on",
    "--num-scheduler-steps": "multi-step scheduling is gone, and nothing has to take its place",
    "--multi-step-stream-outputs": "multi-step scheduling is gone",
    "--swap-space": "vLLM no longer swaps to host memory",
    "--device": "the image decides",
    "--num-lookahead-slots": "vLLM reserves them by itself",
    "--preemption-mode": "vLLM always recomputes",
    "--worker-use-ray": "one pod is one engine",
    "--engine-use-ray": "one pod is one engine",
    "--disable-logprobs-during-spec-decoding": "gone from vLLM",
    "--speculative-disable-mqa-scorer": "gone from vLLM",
    "--typical-acceptance-sampler-posterior-threshold": "the lossy typical sampler is gone",
    "--typical-acceptance-sampler-posterior-alpha": "the lossy typical sampler is gone",
    "--disable-frontend-multiprocessing": "gone from vLLM",
}
"""Old options that can go -> why nothing is lost."""

_LISTS: Final = ("--cuda-graph-sizes",)
_SAMPLER: Final = "--spec-decoding-acceptance-method"
_OFF_ABOVE: Final = "--speculative-disable-by-batch-size"
_PLAIN_TASKS: Final = ("auto", "generate")


@dataclass(frozen=True)
class OldFlag:
    """One old option with the words that belong to it; `rest` are words after it that do not."""

    name: str
    value: str | None
    rest: tuple[str, ...]


def old_flag(item: str, following: Sequence[str]) -> OldFlag | None:
    """The old option that `item` names, None for any other; `following` are the plain words after it."""
    name, equals, value = item.partition("=")
    name = name.replace("_", "-")
    if name in SPELLINGS or (name not in DEAD_OPTIONS and name not in _NO_EFFECT):
        return None
    if equals:
        return OldFlag(name, value, tuple(following))
    takes = 0 if name in _SWITCHES else len(following) if name in _LISTS else 1
    return OldFlag(name, " ".join(following[:takes]) if takes and following else None, tuple(following[takes:]))


def convert(flag: OldFlag, speculative: dict[str, Any], report: Report) -> None:
    """Put what the flag means into `speculative`, or say what becomes of it."""
    if key := _SPECULATIVE.get(flag.name):
        report.note(flag.name, f"an option of older versions; vLLM {VLLM_VERSION} calls it {key} in its config")
        speculative[key] = _value(key, flag, report)
    elif why := _NO_EFFECT.get(flag.name):
        report.note(flag.name, f"left out: vLLM {VLLM_VERSION} no longer has it; {why}")
    elif flag.name == _SAMPLER:
        _sampler(flag, report)
    elif flag.name == "--task" and flag.value in _PLAIN_TASKS:
        report.note(flag.name, f"left out: vLLM {VLLM_VERSION} no longer has it, and generates anyway")
    elif flag.name == _OFF_ABOVE and (limit := whole(flag.value)):
        report.lose(
            flag.name,
            f"gone from vLLM; end spec.schedule with a range from {limit + 1} that has numSpeculativeTokens 0, "
            "if the method can draft nothing",
        )
    else:
        report.lose(flag.name, f"vLLM {VLLM_VERSION} no longer has this option: {DEAD_OPTIONS[flag.name]}")


def _value(key: str, flag: OldFlag, report: Report) -> Any:
    number = whole(flag.value)
    if flag.value is None:
        report.problem(flag.name, "needs a value")
    elif key in _NUMBERS and number is None:
        report.problem(flag.name, "must be a whole number")
    return number if key in _NUMBERS else flag.value


def _sampler(flag: OldFlag, report: Report) -> None:
    if flag.value == "typical_acceptance_sampler":
        report.note(
            flag.name,
            "left out: the typical acceptance sampler was lossy and is gone; outputs change to those of the target "
            "model alone, and fewer drafts are accepted",
        )
    else:
        report.note(flag.name, f"left out: vLLM {VLLM_VERSION} always samples by rejection, which this asked for")
