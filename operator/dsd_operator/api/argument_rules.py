"""CEL rules about `extraArgs` and `env`, made from `dsd_runtime.owned`: what is refused in any spelling.

What CEL cannot see (abbreviations that are ambiguous, options nobody knows, values that belong to another item) is
found before a pod is made, by `dsd_runtime.options.owned_problems`.
"""

import re
from collections.abc import Iterator
from typing import Final

from dsd_operator.api.cel import Rule, first_of, one_of, quote, raw
from dsd_runtime import owned
from dsd_runtime.options import SPLIT_ITEM_MESSAGE, SPLIT_ITEM_PATTERN, prefix_pattern
from dsd_runtime.vllm_options import VLLM_VERSION


def _refused(pattern: str, message: str) -> Rule:
    return Rule(f"!self.matches({raw(pattern)})", message)


def _dead_rules() -> Iterator[Rule]:
    """One rule for each option that vLLM lost, but for those that a group refuses already."""
    groups = [re.compile(prefix_pattern(group.options)) for group in owned.OWNED_GROUPS]
    for option, instead in owned.DEAD_OPTIONS.items():
        if not any(group.match(option) for group in groups):
            name = option.removeprefix("--").replace("-", "[-_]")
            yield _refused(f"^--{name}([=.]|$)", f"vLLM {VLLM_VERSION} no longer has {option}: {instead}")


ITEM_RULES: Final = (
    _refused(SPLIT_ITEM_PATTERN, SPLIT_ITEM_MESSAGE),
    _refused("^--$", "'--' would turn every option after it into a value; remove it"),
    _refused(f"^{owned.OWN_PREFIX}", f"options that begin with {owned.OWN_PREFIX} are the operator's own; remove it"),
    *_dead_rules(),
    *(_refused(prefix_pattern(group.options), group.message) for group in owned.OWNED_GROUPS),
)
"""Rules on one item of extraArgs (`self`)."""


def _value_rule(option: str, values: tuple[str, ...], message: str) -> Rule:
    """`option` may be given with one of `values` only, joined by = or as the next item."""
    pattern = prefix_pattern((option,))
    joined = f"a.matches({raw('=(' + '|'.join(map(re.escape, values)) + ')$')})"
    apart = f"(!a.contains('=') && self.extraArgs.exists(b, {one_of('b', values)}))"
    return Rule(
        f"!has(self.extraArgs) || self.extraArgs.all(a, !a.matches({raw(pattern)}) || {joined} || {apart})",
        message,
        field_path=".extraArgs",
    )


ENGINE_ARGUMENT_RULES: Final = (
    _value_rule(
        owned.MAX_MODEL_LEN,
        owned.AUTO_VALUES,
        "set engine.maxModelLen instead of --max-model-len; only --max-model-len=auto belongs here",
    ),
    Rule(
        f"!has(self.maxModelLen) || !has(self.extraArgs) || "
        f"!self.extraArgs.exists(a, a.matches({raw(prefix_pattern((owned.MAX_MODEL_LEN,)))}))",
        "engine.maxModelLen and --max-model-len are both given; keep one",
        field_path=".extraArgs",
    ),
    _value_rule(
        owned.EXECUTOR_BACKEND,
        owned.EXECUTOR_BACKENDS,
        "one pod is one engine: of the executor backends only mp and uni stay inside a pod",
    ),
)
"""Rules on the engine (`self`)."""


def _env_hint() -> str:
    cases = [(f"self.name == {quote(name)}", f"{name} may not be set here: {m}") for name, m in owned.OWNED_ENV.items()]
    return first_of(cases, f"names that begin with {owned.OWNED_ENV_PREFIX} belong to the runtime")


ENV_RULES: Final = (
    Rule(
        f"!({one_of('self.name', owned.OWNED_ENV)} || self.name.startsWith({quote(owned.OWNED_ENV_PREFIX)}))",
        "this variable is set by the operator",
        _env_hint(),
        ".name",
    ),
    Rule(
        "!(has(self.value) && has(self.valueFrom))",
        "value and valueFrom are both given; keep one",
    ),
)
"""Rules on one environment variable (`self`)."""
