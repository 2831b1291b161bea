"""The free keys of the drafter (`drafter.parameters`), which go into vLLM's speculative config as they are.

Compared as vLLM reads them: `-` and `_` are the same (`EngineArgs.create_speculative_config`). Pure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from dsd_runtime.schedule import Problem
from dsd_runtime.support import PARALLEL_METHODS
from dsd_runtime.vllm_options import SPECULATIVE_CONFIG_KEYS, VLLM_VERSION

TYPED_KEYS: Final[Mapping[str, str]] = {
    "method": "drafter.method",
    "model": "drafter.model",
    "revision": "drafter.revision",
    "num_speculative_tokens": "drafter.numSpeculativeTokens",
    "num_speculative_tokens_per_batch_size": "schedule",
    "draft_tensor_parallel_size": "drafter.tensorParallelSize",
    "tensor_parallel_size": "drafter.tensorParallelSize",
    "prompt_lookup_min": "drafter.promptLookup.min",
    "prompt_lookup_max": "drafter.promptLookup.max",
}
"""Key of vLLM -> the field of the resource's spec that holds it."""

INTERNAL_KEYS: Final = frozenset(
    {"target_model_config", "target_parallel_config", "draft_model_config", "draft_parallel_config"}
)
"""Keys that vLLM fills in itself."""

SWITCHES: Final = ("parallel_drafting", "use_heterogeneous_vocab", "enable_adaptive_verification")
"""Keys that decide which model runner and which K are possible, so they must be plain booleans."""


def normalise(key: str) -> str:
    """A key as vLLM reads it."""
    return key.replace("-", "_")


def switch(parameters: Mapping[str, Any], name: str) -> bool:
    """Whether the switch `name` is on, in either spelling of the key."""
    return any(normalise(key) == name and value is True for key, value in parameters.items())


def parameter_problems(
    parameters: Mapping[str, Any], method: str, model_runner: str, field: str = "spec.drafter.parameters"
) -> list[Problem]:
    """Everything wrong with the free keys of a drafter; `field` is the path that the problems name."""
    problems = [Problem(f"{field}.{key}", m) for key, value in parameters.items() for m in _key_messages(key, value)]
    counted = Counter(normalise(key) for key in parameters)
    problems += [
        Problem(f"{field}.{k}", "given twice, with - and with _; keep one") for k, n in counted.items() if n > 1
    ]
    return problems + [Problem(field, m) for m in combination_messages(parameters, method, model_runner)]


def _key_messages(key: str, value: Any) -> list[str]:
    name = normalise(key)
    if name in TYPED_KEYS:
        return [f"has a field of its own: set spec.{TYPED_KEYS[name]} instead"]
    if name in INTERNAL_KEYS:
        return ["is filled in by vLLM itself; leave it out"]
    if name not in SPECULATIVE_CONFIG_KEYS:
        return [f"vLLM {VLLM_VERSION} knows no such key{_nearest(name)}"]
    if name in SWITCHES and not isinstance(value, bool):
        return ["must be true or false, without quotes"]
    return []


def _nearest(name: str) -> str:
    public = [k for k in SPECULATIVE_CONFIG_KEYS if k not in INTERNAL_KEYS]
    near = get_close_matches(name, public, n=1)
    if not near:
        return ""
    typed = TYPED_KEYS.get(near[0])
    return f"; did you mean {near[0]}?" + (f" It has a field of its own, spec.{typed}" if typed else "")


def combination_messages(parameters: Mapping[str, Any], method: str, model_runner: str) -> Iterator[str]:
    """Combinations that vLLM refuses at start: `VllmConfig._get_v{1,2}_model_runner_unsupported_features`,
    `SpeculativeConfig._verify_args`."""
    if switch(parameters, "use_heterogeneous_vocab"):
        yield from _heterogeneous_messages(parameters, method, model_runner)
    if switch(parameters, "enable_adaptive_verification"):
        yield from _adaptive_messages(method, model_runner)
    if switch(parameters, "parallel_drafting") and method not in ("dflash", "dspark"):
        yield from _parallel_messages(method, model_runner)


def _heterogeneous_messages(parameters: Mapping[str, Any], method: str, model_runner: str) -> Iterator[str]:
    if method != "draft_model":
        yield "use_heterogeneous_vocab works with method draft_model only"
    if model_runner == "V2":
        yield "use_heterogeneous_vocab needs model runner V1; set engine.modelRunner to Auto or V1"
    if any(normalise(k) == "draft_sample_method" and v != "greedy" for k, v in parameters.items()):
        yield "use_heterogeneous_vocab works with draft_sample_method greedy only"


def _adaptive_messages(method: str, model_runner: str) -> Iterator[str]:
    if method != "dspark":
        yield "enable_adaptive_verification works with method dspark only"
    if model_runner == "V1":
        yield "enable_adaptive_verification needs model runner V2; set engine.modelRunner to Auto or V2"


def _parallel_messages(method: str, model_runner: str) -> Iterator[str]:
    if method not in PARALLEL_METHODS:
        yield f"parallel_drafting works with {', '.join(PARALLEL_METHODS)} only; remove it"
    elif model_runner == "V2":
        yield "parallel_drafting needs model runner V1; set engine.modelRunner to Auto or V1"
