"""vLLM's speculative config, in whatever way it was given, as spec.drafter and spec.schedule.

`dsd_runtime.convert` judges it (keys, methods, K, tables), as `dsd schedule convert` does; here the words of a command
line are put together before, and the result is written in the resource's fields after.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api.constants import KIND
from dsd_runtime.convert import ConvertError, from_vllm, parse_object, read_table
from dsd_runtime.convert.keys import TABLE_KEY
from dsd_runtime.convert.numbers import whole
from dsd_runtime.parameters import TYPED_KEYS, normalise
from dsd_runtime.support import MODEL_USE, PROMPT_LOOKUP_METHODS
from dsd_runtime.usage import UsageError
from dsd_runtime.vllm_arguments import SPEC_FLAGS, SPECULATIVE, speculative_config, uses
from kubectl_dsd.convert.model import drafter_name
from kubectl_dsd.convert.report import NO_SPECULATION, Report

_NUMBER: Final = "num_speculative_tokens"
_HEADS: Final = ("eagle", "eagle3", "mtp", "medusa", "mlp_speculator")


@dataclass(frozen=True)
class Wishes:
    """What the person decides where the input leaves it open."""

    method: str | None = None
    schedule: str | None = None


def gather(words: Sequence[str], old: Mapping[str, Any], stray: Sequence[str], report: Report) -> dict[str, Any] | None:
    """The whole config; None where there is a problem, which was told. `stray` are words that nothing claimed."""
    try:
        for use in uses(words):
            if use.canonical == SPECULATIVE and not use.keys:
                parse_object(_joined(use.value, stray), SPECULATIVE)
        config = speculative_config(words) or {}
    except ConvertError as error:
        report.take(error)
        return None
    except UsageError as error:
        report.problem(SPECULATIVE, str(error))
        return None
    _check_twice(words, config, report)
    if twice := old.keys() & {normalise(key) for key in config}:
        report.problem(SPECULATIVE, f"{', '.join(sorted(twice))}: given by an option of older versions too; keep one")
    return {**old, **config}


def _joined(value: str, stray: Sequence[str]) -> str:
    """A JSON text that a shell cut at its spaces, with the pieces put back: the error should name the real fault."""
    if value.startswith("{") and value.count("{") > value.count("}") and stray:
        return " ".join([value, *stray])
    return value


def _check_twice(words: Sequence[str], config: Mapping[str, Any], report: Report) -> None:
    """vLLM refuses a flag beside the same JSON key, but not where that is written with dashes: there the flag wins."""
    flags = {SPEC_FLAGS[use.canonical]: use.canonical for use in uses(words) if use.canonical in SPEC_FLAGS}
    rest = [
        word for use in uses(words) if use.canonical == SPECULATIVE for word in words[use.words.start : use.words.stop]
    ]
    inside = speculative_config(rest) or {}
    for key, flag in flags.items():
        if key in inside:
            report.problem(flag, f"{SPECULATIVE} says {key} too, and vLLM takes only one of them; keep one")
        assert key in config


def fields(
    config: Mapping[str, Any] | None, wishes: Wishes, max_num_seqs: int | None, report: Report
) -> dict[str, Any]:
    """`drafter` and `schedule` of the spec; empty where there is a problem, which was told."""
    if config is None:
        return {}
    if not config:
        report.problem("", NO_SPECULATION)
        return {}
    merged = dict(config) | ({"method": wishes.method} if wishes.method else {})
    if wishes.schedule is not None:
        merged = {k: v for k, v in merged.items() if normalise(k) != TABLE_KEY}
        rows = read_table(wishes.schedule, "--schedule", report)
        merged[TABLE_KEY] = [list(row) for row in rows]
        if not rows:
            return {}
    try:
        found = from_vllm(_strings(merged, report), max_num_seqs)
    except ConvertError as error:
        report.take(error)
        return {}
    report.notes += found.notes
    if "method" not in found.speculative:
        report.problem(
            "method",
            f"not given, and the drafter's name does not tell it; a {KIND} names its method. vLLM looks into the "
            "checkpoint's config.json and falls back to draft_model: see what its log says, and give it with --method",
        )
        return {}
    schedule = [item.model_dump(by_alias=True) for item in found.ranges]
    return {"drafter": _drafter(found.speculative, report), "schedule": schedule}


def _strings(config: dict[str, Any], report: Report) -> dict[str, Any]:
    """Revisions must be texts: YAML makes 1.1 of 1.10, and a date of 2024-06-01."""
    for key, value in config.items():
        if normalise(key) in ("revision", "code_revision", "model", "quantization") and not isinstance(
            value, str | None
        ):
            report.problem(key, f"must be a text, not {type(value).__name__}; put it in quotes")
    return config


def _drafter(config: Mapping[str, Any], report: Report) -> dict[str, Any]:
    drafter: dict[str, Any] = {"method": config["method"]}
    config = _with_meaning(config, report)
    if config.get("model") is not None:
        drafter["model"] = drafter_name(str(config["model"]), config["method"], report)
    if config.get("revision") is not None:
        drafter["revision"] = config["revision"]
    drafter["numSpeculativeTokens"] = config[_NUMBER]
    if (size := config.get("draft_tensor_parallel_size")) is not None:
        drafter["tensorParallelSize"] = whole(size) if whole(size) is not None else size
        if size == 1 and config["method"] in _HEADS:
            report.note("drafter.tensorParallelSize", "1 has no effect on a head, which runs with the target's size")
    lookup = {end: config[f"prompt_lookup_{end}"] for end in ("min", "max") if config.get(f"prompt_lookup_{end}")}
    if lookup and config["method"] in PROMPT_LOOKUP_METHODS:
        drafter["promptLookup"] = lookup
    elif lookup:
        report.note("promptLookup", f"left out: method {config['method']} looks nothing up in the prompt")
    # A null is what vLLM takes for "not given", and the API server drops it.
    rest = {k: v for k, v in config.items() if k not in TYPED_KEYS and v is not None}
    return drafter | ({"parameters": rest} if rest else {})


def _with_meaning(config: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Without keys that vLLM takes and then does not look at."""
    method = config["method"]
    idle = ["model", "draft_tensor_parallel_size", "revision"] if MODEL_USE[method] == "forbidden" else []
    idle += ["revision"] if config.get("model") is None else []
    for key in dict.fromkeys(key for key in idle if config.get(key) is not None):
        why = f"method {method} loads no drafter" if MODEL_USE[method] == "forbidden" else "no model is named"
        report.note(key, f"left out: {why}")
    return {key: value for key, value in config.items() if key not in idle}


def split_problem(drafter: Mapping[str, Any], target_size: int) -> str | None:
    """What is wrong with the drafter's tensor parallel size beside the target's (`SpeculativeConfig`)."""
    size = drafter.get("tensorParallelSize")
    if size is None or (size in (1, target_size) and (size == target_size or drafter["method"] != "draft_model")):
        return None
    allowed = str(target_size) if drafter["method"] == "draft_model" else f"1 or {target_size}"
    return f"is {size}; with --tensor-parallel-size {target_size} vLLM takes {allowed} only"
