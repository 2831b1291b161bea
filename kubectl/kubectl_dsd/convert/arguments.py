"""Sorts the arguments of `vllm serve` by what becomes of them in the resource.

`dsd_runtime.options` reads each word as vLLM's own parser does, `dsd_runtime.owned` knows which options have a field or
an owner. What has neither goes into extraArgs, in its full spelling.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_runtime import owned
from dsd_runtime.options import (
    SPLIT_ITEM_MESSAGE,
    SPLIT_ITEM_PATTERN,
    Given,
    full_spelling,
    read,
    unclear_message,
)
from dsd_runtime.vllm_arguments import SPEC_FLAGS, SPECULATIVE
from dsd_runtime.vllm_options import OPTIONS
from kubectl_dsd.convert import old_flags, parallel
from kubectl_dsd.convert.redactor import holds_secret
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.secret_names import SECRET_OPTIONS, is_secret_name
from kubectl_dsd.convert.typed import TYPED, TypedError
from kubectl_dsd.convert.variables import explain, unknowns

_SILENT: Final = ("--host", "--port")
"""Where vLLM listened is of no interest: the operator decides that, and a Service leads there."""

_SWITCH: Final = ("0", "!")
_SPLIT: Final = re.compile(SPLIT_ITEM_PATTERN)
_HELM_NUMBER: Final = re.compile(r"\d(\.\d+)?e\+\d+")


_HOLDS_SECRET: Final = (
    "holds a password or token, which must not stand in a resource; see whether vLLM reads it from an environment "
    "variable, and set that from a Secret (engine.env)"
)


@dataclass
class Sorted:
    """The arguments by where they go."""

    models: list[str] = field(default_factory=list)
    """Every name of the model: positional, or by --model."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Path below spec (`engine.maxNumSeqs`) -> value."""
    extra: list[str] = field(default_factory=list)
    speculative: list[str] = field(default_factory=list)
    """The words of --speculative-config and its like, for the reader in `dsd_runtime`."""
    old: dict[str, Any] = field(default_factory=dict)
    """Keys of the speculative config from options of older versions."""
    secrets: dict[str, list[str]] = field(default_factory=dict)
    """Option -> the secrets it was given; an empty list where it stood without one."""
    stray: list[str] = field(default_factory=list)
    """Words that vLLM would not know what to do with."""


class Sorter:
    """Sorts one command line."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.found = Sorted()

    def sort(self, arguments: Sequence[str]) -> Sorted:
        """Everything in `arguments`; problems go to the report."""
        end = list(arguments).index("--") if "--" in arguments else len(arguments)
        for given in read(arguments[:end]):
            self._one(given)
        self.found.models += arguments[end + 1 :]
        return self.found

    def _one(self, given: Given) -> None:
        if given.option is None:
            self.found.models.append(given.item)
        elif given.option.canonical is None and _SPLIT.match(given.item):
            self.report.problem(given.item.split()[0], SPLIT_ITEM_MESSAGE)
        elif flag := old_flags.old_flag(given.item, given.values):
            self.found.models += flag.rest
            old_flags.convert(flag, self.found.old, self.report)
        elif given.item.startswith(owned.OWN_PREFIX):
            self._own(given)
        elif given.option.canonical is None:
            self.report.lose(given.item.partition("=")[0], unclear_message(given.item, given.option))
        elif self._well_formed(given.option.canonical, given):
            self._known(given.option.canonical, given, _values(given))

    def _own(self, given: Given) -> None:
        """An option of dsd-serve, from a command that ran our runtime without Kubernetes."""
        name, values = given.item.partition("=")[0], _values(given)
        numbers = [text.strip() for value in values for text in value.split(",")]
        if name == "--dsd-prepared-tokens" and numbers and all(n.isdigit() for n in numbers):
            self.found.fields["drafter.preparedTokens"] = [int(n) for n in numbers]
        else:
            self.report.lose(name, "an option of dsd-serve; the file's ranges belong into spec.schedule (--schedule)")

    def _well_formed(self, canonical: str, given: Given) -> bool:
        """Whether the option has the values that vLLM wants, and all of them are known; else a problem was told."""
        assert given.option is not None
        arity, name, values = OPTIONS[canonical][0], given.item.partition("=")[0], _values(given)
        if arity in _SWITCH and given.option.value is not None:
            self.report.problem(name, "is a switch and takes no value")
        elif arity in ("1", "+") and not values:
            self.report.problem(name, "needs a value")
        elif any(_HELM_NUMBER.fullmatch(value) for value in values):
            self.report.problem(name, "a large number that Helm wrote with an exponent; quote it in the values file")
        elif canonical not in SECRET_OPTIONS and (missing := [u for value in values for u in unknowns(value)]):
            for what in dict.fromkeys(missing):
                self.report.problem(name, explain(what))
        else:
            return True
        return False

    def _known(self, canonical: str, given: Given, values: list[str]) -> None:
        name = given.item.partition("=")[0]
        if canonical == SPECULATIVE or canonical in SPEC_FLAGS:
            self.found.speculative += [given.item, *given.values]
        elif canonical in SECRET_OPTIONS:
            self.found.secrets.setdefault(canonical, []).extend(values)
        elif canonical == "--model":
            self.found.models = [*values, *self.found.models]
        elif canonical in TYPED:
            self._typed(canonical, name, values)
        elif canonical in parallel.OPTIONS_OF_SEVERAL:
            parallel.judge(canonical, name, values, self.report)
        elif canonical not in _SILENT and not self._refused(canonical, given, values):
            self._extra(canonical, given, values)

    def _typed(self, canonical: str, name: str, values: list[str]) -> None:
        try:
            found = TYPED[canonical](values)
        except TypedError as error:
            self.report.problem(name, str(error))
            return
        self.found.extra = [item for item in self.found.extra if item.partition("=")[0] != canonical]
        for path in found.cleared:
            self.found.fields.pop(path, None)
        self.found.fields |= found.fields
        self.found.extra += found.extra

    def _refused(self, canonical: str, given: Given, values: list[str]) -> bool:
        """Whether the operator does not let this option through, which was told."""
        name = given.item.partition("=")[0]
        if canonical == "--config":
            self._config_file(given)
        elif canonical == "--help":
            self.report.problem(name, "this prints a help text instead of serving; remove it")
        elif canonical == "--headless":
            self.report.problem(name, "an engine without an API is one of several nodes; see spec.engine.nodes")
        elif canonical == owned.EXECUTOR_BACKEND and values[0] not in owned.EXECUTOR_BACKENDS:
            self.report.problem(name, "one pod is one engine: of the executor backends only mp and uni stay in a pod")
        elif message := owned.OWNED_OPTIONS.get(canonical):
            self.report.lose(name, message)
        elif is_secret_name(name) or any(map(holds_secret, values)):
            self.report.lose(name, _HOLDS_SECRET)
        else:
            return False
        return True

    def _config_file(self, given: Given) -> None:
        assert given.option is not None
        if given.option.value is not None:
            self.report.problem(
                "--config=",
                "vLLM ignores --config=FILE without a word and runs without what the file says; write it as two "
                "words (--config FILE), and give the file's content to this command with --config-file",
            )
        else:
            self.report.problem("--config", "what this file says counts too; give its content with --config-file FILE")

    def _extra(self, canonical: str, given: Given, values: list[str]) -> None:
        assert given.option is not None
        name = full_spelling(given.item) or canonical
        if given.option.dotted:
            # vLLM joins the keys of one spelling into one value, so the spelling stays.
            name = given.item.partition("=")[0]
        if len(values) == 1:
            self.found.extra.append(f"{name}={values[0]}")
        else:
            self.found.extra += [name, *values]


def _values(given: Given) -> list[str]:
    assert given.option is not None
    return [given.option.value] if given.option.value is not None else list(given.values)
