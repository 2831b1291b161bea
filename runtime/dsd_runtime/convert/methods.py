"""Speculative methods by name: known, misspelt, old, or left out, as vLLM 0.32 reads them
(`SpeculativeConfig.__post_init__` in `vllm/config/speculative.py`)."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from dsd_runtime.convert.report import Report
from dsd_runtime.support import MODEL_USE
from dsd_runtime.vllm_options import METHODS, MTP_ALIASES, VLLM_VERSION

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "[ngram]": "write ngram",
    "pard": "write draft_model, and parallel_drafting: true beside it",
    "p_eagle": "write eagle3 (or eagle), and parallel_drafting: true beside it",
    "p-eagle": "write eagle3 (or eagle), and parallel_drafting: true beside it",
    "arctic": "Arctic Inference's method is called suffix",
    "lookahead": "the method that looks drafts up in the prompt is called ngram",
    "prompt_lookup": "the method that looks drafts up in the prompt is called ngram",
}
"""Names that people give to methods -> what to write instead."""

_BY_NAME: Final = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
"""What vLLM looks for in a drafter's path in lower case, in this order, and the method it makes of it."""

_KEEPS_ITS_METHOD: Final = ("eagle", "eagle3", "dflash", "dspark")
"""Methods that vLLM leaves alone whatever the path says."""


def method_problem(method: object) -> str | None:
    """What is wrong with the name of a method, with the nearest one; None for one that vLLM knows."""
    if not isinstance(method, str):
        return "must be the name of a method"
    if method in METHODS or method in MTP_ALIASES:
        return None
    if instead := _OTHER_NAMES.get(method.lower()):
        return f"vLLM has no method {method!r}: {instead}"
    near = get_close_matches(method.lower().replace("-", "_"), (*METHODS, *MTP_ALIASES), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"vLLM {VLLM_VERSION} has no method {method!r}; {hint}It has {', '.join(METHODS)}"


def is_python_path(model: str) -> bool:
    """Whether vLLM takes the drafter's name for a Python class (`package.Class`)."""
    parts = model.split(".")
    return "/" not in model and len(parts) >= 2 and all(part.isidentifier() for part in parts)


def by_model_name(model: str) -> str | None:
    """The method that vLLM makes of a drafter's name alone; None where the checkpoint's config.json decides."""
    lower = model.lower()
    return next((method for part, method in _BY_NAME if part in lower), None)


def resolve_method(config: dict[str, Any], report: Report) -> str | None:
    """The method, with `config` changed to say so; None where it stays open (or is a problem, which is reported)."""
    if config.get("method") is None:
        config.pop("method", None)
        return _guess(config, report)
    method = config["method"]
    if problem := method_problem(method):
        report.problem("method", problem)
        return None
    if method in MTP_ALIASES:
        report.note("method", f"{method} is vLLM's old name of mtp; written as mtp")
        config["method"] = method = "mtp"
    _check_model(config, method, report)
    return str(method)


def _guess(config: dict[str, Any], report: Report) -> str | None:
    model = config.get("model")
    if not isinstance(model, str):
        report.problem("method", f"name a method, one of {', '.join(METHODS)}")
        return None
    if model in ("ngram", "[ngram]"):
        del config["model"]
        found = "ngram"
    elif is_python_path(model):
        found = "custom_class"
        report.note("model", f"vLLM takes {model} for a Python class, since it is a dotted name without a slash")
    else:
        found = by_model_name(model) or ""
    if not found:
        report.note(
            "method",
            f"not given, and the name {model} does not tell: vLLM decides by the checkpoint's config.json and falls "
            "back to draft_model. Name the method to be sure",
        )
        return None
    report.note("method", f"guessed from the model's name, as vLLM does: {found}")
    config["method"] = found
    return found


def _check_model(config: Mapping[str, Any], method: str, report: Report) -> None:
    model = config.get("model")
    if model is None:
        if MODEL_USE[method] == "required":
            report.problem("model", f"method {method} needs one")
        return
    if not isinstance(model, str):
        report.problem("model", "must be the name or path of a model")
    elif MODEL_USE[method] != "forbidden" and method not in (*_KEEPS_ITS_METHOD, "custom_class"):
        changed = by_model_name(model)
        if changed is not None and changed != method:
            report.note("method", f"vLLM will use {changed} instead of {method}, because of the model's name {model}")
