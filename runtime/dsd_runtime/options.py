"""Read arguments of `vllm serve` as vLLM reads them, and find those that a user may not pass.

vLLM's parser takes an option by any of its spellings: aliases, `_` for `-`, `--option=value`, unique abbreviations,
dotted keys (`--speculative-config.method mtp`), values glued to one-letter options. A list of literal names would miss
most of them. `vllm_options` is the table, `owned` says what is refused; the CRD's rules use `prefix_pattern`.

Messages name options and never their values: a value may be a secret.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from dsd_runtime import owned
from dsd_runtime.schedule import Problem
from dsd_runtime.vllm_options import OPTIONS, VLLM_VERSION


def _spellings() -> dict[str, str]:
    table: dict[str, str] = {}
    for canonical, (arity, *others) in OPTIONS.items():
        negative = ["--no-" + canonical.removeprefix("--")] if arity == "!" else []
        table |= dict.fromkeys([canonical, *others, *negative], canonical)
    return table


SPELLINGS: Final = _spellings()
"""Every full spelling -> the canonical one."""

_NEGATIVE_NUMBER: Final = re.compile(r"-\d+|-\d*\.\d+")
_SPLIT_ITEM: Final = re.compile(r"""-[^\s="']*\s""")

SPLIT_ITEM_PATTERN: Final = f"^{_SPLIT_ITEM.pattern}"
"""Matches an item that holds an option and its value in one, as `--seed 0`."""

SPLIT_ITEM_MESSAGE: Final = "option and value stand in one item; split into two items, or join them with ="


_VALUE_MESSAGE: Final = "neither an option nor the value of the option before it; the model is spec.model.name"


@dataclass(frozen=True)
class Option:
    """One argument that names an option.

    `candidates` are the canonical options it can mean: one if it is clear, several if it is an ambiguous abbreviation,
    none if vLLM does not know it. `value` is what follows `=` (or is glued on), `dotted` the form `--option.key`.
    """

    candidates: tuple[str, ...]
    value: str | None = None
    dotted: bool = False

    @property
    def canonical(self) -> str | None:
        """The one option it means; None if unknown or ambiguous."""
        return self.candidates[0] if len(self.candidates) == 1 else None


def resolve(item: str) -> Option | None:
    """What `item` means where vLLM expects an option; None for a plain value (also a negative number)."""
    if len(item) < 2 or not item.startswith("-") or _NEGATIVE_NUMBER.fullmatch(item):
        return None
    if item.startswith("-O"):  # vLLM's own shorthand, handled before argparse
        return Option(("--optimization-level",), item[2:].removeprefix("=") or None)
    name, equals, value = item.partition("=")
    name, dot, _ = name.partition(".")
    if name.startswith("--"):
        name = name.replace("_", "-")
    given = value if equals else None
    if name in SPELLINGS:
        return Option((SPELLINGS[name],), given, bool(dot))
    if glued := _glued(item):
        return glued
    if equals and not dot and not name.startswith("--"):
        return Option((), given)  # whether argparse takes a short option cut short before = depends on Python's version
    return Option(_abbreviated(name), given, bool(dot))


def _glued(item: str) -> Option | None:
    """`-nVALUE`: argparse lets the value of a one-letter option follow without a space."""
    canonical = SPELLINGS.get(item[:2])
    if canonical is None or item.startswith("--") or any(s.startswith(item) for s in SPELLINGS):
        return None
    return Option((canonical,), item[2:])


def _abbreviated(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c for spelling, c in SPELLINGS.items() if spelling.startswith(name)))


def full_spelling(item: str) -> str | None:
    """The spelling that `item` stands for, written out: of a switch its `--no-` form where that is meant, else the
    canonical one; None where it is not clear."""
    option = resolve(item)
    if option is None or option.canonical is None:
        return None
    name = item.partition("=")[0].replace("_", "-")
    negative = "--no-" + option.canonical.removeprefix("--")
    return negative if negative.startswith(name) and SPELLINGS.get(negative) else option.canonical


@dataclass(frozen=True)
class Given:
    """One item of a command line with the items after it that belong to it; `option` is None for a plain value."""

    position: int
    item: str
    option: Option | None
    values: tuple[str, ...] = ()


def read(arguments: Sequence[str]) -> Iterator[Given]:
    """Each option with its values, and each value that belongs to no option, in order."""
    position = 0
    while position < len(arguments):
        item = arguments[position]
        option = resolve(item)
        values = tuple(_values(option, arguments[position + 1 :])) if option else ()
        yield Given(position, item, option, values)
        position += 1 + len(values)


def owned_problems(extra_args: Sequence[str], field: str = "spec.engine.extraArgs") -> list[Problem]:
    """Everything in `extra_args` that is refused or that vLLM could not read; `field` is the path of the problems."""
    problems = []
    for given in read(extra_args):
        option, item = given.option, given.item
        message = _split(item) or (_option_message(item, option, given.values) if option else _VALUE_MESSAGE)
        if message:
            problems.append(Problem(f"{field}[{given.position}]", message))
        problems += [
            Problem(f"{field}[{given.position + i}]", m)
            for i, value in enumerate(given.values, start=1)
            if (m := _split(value))
        ]
    return problems


def _split(item: str) -> str | None:
    return f"{item.split()[0]!r}: {SPLIT_ITEM_MESSAGE}" if _SPLIT_ITEM.match(item) else None


def _values(option: Option, following: Sequence[str]) -> list[str]:
    """The items after an option that argparse gives to it; after one that is not clear, all that could be meant."""
    if option.value is not None:
        return []
    if option.dotted:  # vLLM takes the next item whatever it is
        return list(following[:1])
    arity = OPTIONS[option.canonical][0] if option.canonical else "*"
    most = {"0": 0, "!": 0, "1": 1, "?": 1}.get(arity, len(following))
    values = []
    for item in following[:most]:
        if resolve(item) is not None and not _SPLIT_ITEM.match(item):
            break
        values.append(item)
    return values


def _option_message(item: str, option: Option, taken: Sequence[str]) -> str | None:
    if item.startswith(owned.OWN_PREFIX):
        return (
            f"{_name(item)!r}: options that begin with {owned.OWN_PREFIX} are the operator's own; remove this argument"
        )
    if item == "--":
        return "'--' would turn every option after it into a value; remove it"
    if option.canonical is None:
        return unclear_message(item, option)
    value = option.value if option.value is not None else next(iter(taken), None)
    refused = _refused(option.canonical, value)
    if refused:
        return f"{_shown(item, option.canonical)}: {refused}"
    return _arity_message(item, option, taken)


def _refused(canonical: str, value: str | None) -> str | None:
    if canonical == owned.MAX_MODEL_LEN:
        if value is not None and value.strip().lower() in owned.AUTO_VALUES:
            return None
        return "set spec.engine.maxModelLen; only --max-model-len=auto belongs here"
    if canonical == owned.EXECUTOR_BACKEND:
        return None if value in owned.EXECUTOR_BACKENDS else "one pod is one engine; only mp and uni stay inside a pod"
    if field := owned.TYPED_OPTIONS.get(canonical):
        return f"this has a field of its own; set {field} instead"
    return owned.OWNED_OPTIONS.get(canonical)


def _arity_message(item: str, option: Option, taken: Sequence[str]) -> str | None:
    assert option.canonical is not None
    arity = OPTIONS[option.canonical][0]
    if option.value is not None or option.dotted:
        takes = arity not in ("0", "!")
        return None if takes else f"{_name(item)!r}: {option.canonical} is a switch and takes no value"
    if arity in ("1", "+") and not taken:
        return f"{_name(item)!r}: {option.canonical} needs a value, as the next item or after ="
    return None


def unclear_message(item: str, option: Option) -> str:
    """Why `option` (of `item`) is not one option of the pinned vLLM, and what was meant."""
    name = _name(item).partition(".")[0].replace("_", "-")
    if instead := owned.DEAD_OPTIONS.get(name):
        return f"{name!r}: vLLM {VLLM_VERSION} no longer has this option: {instead}"
    if option.candidates:
        return f"{name!r} is short for several options: {', '.join(option.candidates)}; write it out"
    near = get_close_matches(name, SPELLINGS, n=1)
    return f"{name!r}: vLLM {VLLM_VERSION} has no such option" + (f"; did you mean {near[0]}?" if near else "")


def _name(item: str) -> str:
    return item.partition("=")[0]


def _shown(item: str, canonical: str) -> str:
    """The option as it was written, and which one it means where that is not plain to see."""
    name = _name(item)
    return repr(name) if name == canonical else f"{name!r} ({canonical})"


def prefix_pattern(canonicals: Iterable[str]) -> str:
    """A regular expression (RE2) that matches an item that vLLM reads as one of `canonicals`, in any spelling.

    A shortest prefix that only these options have stands for all longer ones: what else begins with it, vLLM does not
    know. A name that other options begin with too is matched whole.
    """
    wanted = frozenset(canonicals)
    prefixes: set[str] = set()
    whole: set[str] = set()
    for spelling in (s for s, canonical in SPELLINGS.items() if canonical in wanted):
        first = 3 if spelling.startswith("--") else 2
        ends = (n for n in range(first, len(spelling) + 1) if set(_abbreviated(spelling[:n])) <= wanted)
        end = next(ends, None)
        (prefixes.add(spelling[:end]) if end else whole.add(spelling))
    parts = [f"({_either(prefixes)})"] if prefixes else []
    parts += [rf"({_either(whole)})([=.]|$)"] if whole else []
    return f"^({'|'.join(parts)})"


def _either(names: Iterable[str]) -> str:
    shortest = [n for n in names if not any(n != other and n.startswith(other) for other in names)]
    return "|".join(_any_separator(n) for n in sorted(shortest))


def _any_separator(name: str) -> str:
    dashes = "--" if name.startswith("--") else "-"
    return dashes + name.removeprefix(dashes).replace("-", "[-_]")
