"""The keys of a speculative config: vLLM's spelling, old and foreign names, and those that it fills in itself."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from dsd_runtime.convert.report import Report
from dsd_runtime.parameters import INTERNAL_KEYS, SWITCHES, normalise
from dsd_runtime.vllm_options import SPECULATIVE_CONFIG_KEYS, VLLM_VERSION

TABLE_KEY: Final = "num_speculative_tokens_per_batch_size"

_RENAMED: Final[Mapping[str, str]] = {
    "ngram_prompt_lookup_max": "prompt_lookup_max",
    "ngram_prompt_lookup_min": "prompt_lookup_min",
}
"""Keys of older versions that mean the same as one of today."""

_OFF_BY_BATCH_SIZE: Final = "gone from vLLM; end the schedule with a range of numSpeculativeTokens 0 instead"
_TENSORRT: Final = "a key of TensorRT-LLM; vLLM's are method, model and num_speculative_tokens"
_SGLANG: Final = "a key of SGLang; K is num_speculative_tokens here, and corresponds to its num-steps"
_HINTS: Final[Mapping[str, str]] = {
    "tensor_parallel_size": "vLLM refuses it here; the drafter's is draft_tensor_parallel_size",
    "disable_by_batch_size": _OFF_BY_BATCH_SIZE,
    "speculative_disable_by_batch_size": _OFF_BY_BATCH_SIZE,
    "decoding_type": _TENSORRT,
    "num_nextn_predict_layers": _TENSORRT,
    "max_draft_len": _TENSORRT,
    "draft_len_schedule": _TENSORRT,
    "speculative_algorithm": _SGLANG,
    "speculative_num_steps": _SGLANG,
    "speculative_eagle_topk": _SGLANG,
    "speculative_num_draft_tokens": _SGLANG,
    "speculative_config": "a key of vLLM's config file; convert what stands under it",
    "ranges": "this looks like a schedule file; convert it with --to vllm",
}
"""Keys that vLLM refuses and people write -> what to do instead."""


def read_keys(config: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The config in vLLM's own spelling of the keys; unknown ones are problems."""
    known: dict[str, Any] = {}
    for given, value in config.items():
        key = normalise(given)
        if renamed := _RENAMED.get(key):
            report.note(given, f"vLLM {VLLM_VERSION} calls it {renamed}; written so")
            key = renamed
        if key in known:
            report.problem(given, f"{key} is given twice; keep one")
        elif problem := _key_problem(key, value):
            report.problem(given, problem)
        else:
            known[key] = value
    return known


def _key_problem(key: str, value: Any) -> str | None:
    if hint := _HINTS.get(key):
        return hint
    if key in INTERNAL_KEYS:
        return "is filled in by vLLM itself; leave it out"
    if key not in SPECULATIVE_CONFIG_KEYS:
        return f"vLLM {VLLM_VERSION} knows no such key{nearest(key)}"
    if key in SWITCHES and not isinstance(value, bool):
        return "must be true or false, without quotes"
    return None


def nearest(key: str) -> str:
    """`; did you mean X?`, or nothing."""
    near = get_close_matches(
        key, [k for k in SPECULATIVE_CONFIG_KEYS if k not in INTERNAL_KEYS and k not in _HINTS], n=1
    )
    return f"; did you mean {near[0]}?" if near else ""
