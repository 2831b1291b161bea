"""CEL rules about methods, made from `dsd_runtime.support`: names, the drafter's model, which K each may schedule."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dsd_operator.api.cel import Rule, first_of, one_of, quote, raw
from dsd_operator.api.model_name import CLASS_PATTERN, MODEL_NAME_PATTERN, model_name_hint
from dsd_runtime.support import (
    MODEL_RUNNERS,
    MODEL_USE,
    PARALLEL_METHODS,
    PROMPT_LOOKUP_METHODS,
    ModelRunner,
    ModelUse,
    Verdict,
    judge,
)
from dsd_runtime.vllm_options import METHODS, MTP_ALIASES


def _switched(name: str) -> str:
    """CEL: a switch among the drafter's parameters is on."""
    value = f"self.drafter.parameters.{name}"
    return f"(has(self.drafter.parameters) && has({value}) && {value})"


_HAS_PARALLEL: Final = _switched("parallel_drafting")
_PROBE: Final = 3
"""Maximum used to ask `judge` for the kind of a row; any number above 1 shows the same."""


def _methods(use: ModelUse) -> list[str]:
    return [method for method in METHODS if MODEL_USE[method] == use]


def _method_hint() -> str:
    lower = "self.method.lowerAscii()"
    cases = (
        (one_of("self.method", MTP_ALIASES), "vLLM's old name of mtp: write method mtp"),
        (one_of(lower, ("pard",)), "write method draft_model and parameters parallel_drafting: true"),
        (one_of(lower, ("p-eagle", "p_eagle", "peagle")), "write method eagle3 and parameters parallel_drafting: true"),
        (one_of(lower, ("arctic", "suffix_decoding")), "write method suffix"),
        (one_of(lower, ("draft", "draft-model", "speculative")), "write method draft_model"),
        (one_of(lower, ("eagle-3", "eagle_3")), "write method eagle3"),
        (one_of(lower, ("[ngram]", "n-gram", "prompt_lookup")), "write method ngram"),
    )
    return (
        f"{one_of(lower, METHODS)} ? {quote('methods are written in lower case: ')} + {lower} : "
        f"{first_of(cases, _METHOD_TEXT)}"
    )


_METHOD_TEXT: Final = f"unknown method; vLLM has {', '.join(METHODS)}"

_IS_CLASS: Final = "self.method == 'custom_class'"

DRAFTER_METHOD_RULES: Final = (
    Rule(one_of("self.method", METHODS), _METHOD_TEXT, _method_hint(), ".method"),
    Rule(
        f"!({one_of('self.method', _methods('required'))}) || has(self.model)",
        "this method needs a draft model or speculator head: set drafter.model",
        field_path=".method",
    ),
    Rule(
        f"!({one_of('self.method', _methods('forbidden'))}) || !has(self.model)",
        f"{', '.join(_methods('forbidden'))} have no model: remove drafter.model, or choose the method of that model",
        field_path=".model",
    ),
    Rule(
        "!has(self.revision) || has(self.model)",
        "a revision without a model means nothing: set drafter.model or remove revision",
        field_path=".revision",
    ),
    Rule(
        f"!has(self.tensorParallelSize) || !({one_of('self.method', _methods('forbidden'))})",
        "this method has no draft model that could be split: remove tensorParallelSize",
        field_path=".tensorParallelSize",
    ),
    Rule(
        f"!has(self.promptLookup) || {one_of('self.method', PROMPT_LOOKUP_METHODS)}",
        f"only {' and '.join(PROMPT_LOOKUP_METHODS)} look up n-grams: remove promptLookup, or set method ngram",
        field_path=".promptLookup",
    ),
    Rule(
        f"!has(self.model) || {_IS_CLASS} || self.model.matches({raw(MODEL_NAME_PATTERN)})",
        "not a model name",
        model_name_hint("self.model"),
        ".model",
    ),
    Rule(
        f"!has(self.model) || !({_IS_CLASS}) || self.model.matches({raw(CLASS_PATTERN)})",
        "custom_class takes the dotted name of a Python class as its model, e.g. my_package.MyProposer",
        field_path=".model",
    ),
)
"""Rules on the drafter (`self`)."""


def support_rules() -> tuple[Rule, ...]:
    """Rules on the spec (`self`): methods that a runner does not have, and K that a method cannot honour there."""
    return (*_matrix_rules(), *_parallel_rules(), *_switch_rules())


def _switch_rules() -> Iterator[Rule]:
    """Switches that one method has on one runner (`dsd_runtime.parameters` says the same before a pod is made)."""
    for name, method, other in (
        ("use_heterogeneous_vocab", "draft_model", "V2"),
        ("enable_adaptive_verification", "dspark", "V1"),
    ):
        where = f"self.drafter.method == {quote(method)} && self.engine.modelRunner != {quote(other)}"
        yield Rule(
            f"!{_switched(name)} || ({where})",
            f"{name} works with method {method} only, and not on model runner {other}",
            field_path=".drafter.parameters",
        )


def _matrix_rules() -> Iterator[Rule]:
    """One rule for all methods that share a verdict and its reason."""
    refused, fixed = defaultdict(list), defaultdict(list)
    for method in METHODS:
        for runner in MODEL_RUNNERS:
            verdict = judge(method, runner, _PROBE)
            reason = next(iter(verdict.reasons.values()), "")
            if not verdict.allowed and judge(method, runner, 1).allowed != (1,):
                refused[reason].append((method, runner))
            elif verdict.reasons:
                fixed[reason].append((method, runner))
    for reason, cases in refused.items():
        yield Rule(f"!({_any_case(cases)})", reason, field_path=".drafter.method")
    for reason, cases in fixed.items():
        only_one = "" if judge(*cases[0], _PROBE).allowed else " && self.drafter.numSpeculativeTokens == 1"
        yield _fixed(_any_case(cases), reason, judge(*cases[0], _PROBE), only_one)


def _parallel_rules() -> Iterator[Rule]:
    methods = one_of("self.drafter.method", PARALLEL_METHODS)
    yield Rule(
        f"!{_HAS_PARALLEL} || {one_of('self.drafter.method', (*PARALLEL_METHODS, 'dflash', 'dspark'))}",
        _reason("ngram", "Auto"),
        field_path=".drafter.parameters",
    )
    where = f"{_HAS_PARALLEL} && {methods} && self.engine.modelRunner != 'V2'"
    yield _fixed(where, _reason("eagle", "V1"), judge("eagle", "V1", _PROBE, parallel_drafting=True))
    yield Rule(
        f"!({_HAS_PARALLEL} && {methods} && self.engine.modelRunner == 'V2')",
        _reason("eagle", "V2"),
        field_path=".drafter.parameters",
    )


def _reason(method: str, runner: ModelRunner) -> str:
    """Why not every K is allowed with parallel drafting."""
    return next(iter(judge(method, runner, _PROBE, parallel_drafting=True).reasons.values()))


def _fixed(where: str, reason: str, verdict: Verdict, also: str = "") -> Rule:
    """Only the maximum may be scheduled, and 0 where `verdict` (on a maximum of _PROBE) allows it."""
    zero = 0 in verdict.allowed
    same = f"self.schedule.all(r, {_is_end('r.numSpeculativeTokens', zero)})"
    prepared = f"(!has(self.drafter.preparedTokens) || self.drafter.preparedTokens.all(k, {_is_end('k', zero)}))"
    values = "0 or the drafter's numSpeculativeTokens" if zero else "the drafter's numSpeculativeTokens"
    return Rule(
        f"!({where}) || ({same} && {prepared}{also})",
        f"{reason}: give every range (and preparedTokens) {values}, or choose another method",
        field_path=".schedule",
    )


def _is_end(k: str, zero: bool) -> str:
    """CEL: a K is the maximum, or 0 where that is allowed too."""
    return f"{k} == self.drafter.numSpeculativeTokens" + (f" || {k} == 0" if zero else "")


def _any_case(cases: list[tuple[str, ModelRunner]]) -> str:
    by_method: dict[str, list[str]] = defaultdict(list)
    for method, runner in cases:
        by_method[method].append(runner)
    by_runners: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for method, runners in by_method.items():
        by_runners[tuple(runners)].append(method)
    return " || ".join(
        f"({one_of('self.drafter.method', methods)}"
        + ("" if len(runners) == len(MODEL_RUNNERS) else f" && {one_of('self.engine.modelRunner', runners)}")
        + ")"
        for runners, methods in by_runners.items()
    )
