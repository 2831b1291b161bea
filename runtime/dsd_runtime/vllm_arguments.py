"""Reads what a command line of `vllm serve` says, as vLLM reads it, and puts a table into it.

Every spelling counts: aliases, abbreviations, `=`, dotted keys (`--speculative-config.method mtp`), `--spec-method`,
and vLLM's own config file. Where these meet, the rules are those of `FlexibleArgumentParser.parse_args` and
`EngineArgs.create_speculative_config`. `serve` checks with it before vLLM loads anything, `listen` reads the address.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dsd_runtime.convert.keys import TABLE_KEY
from dsd_runtime.options import read
from dsd_runtime.parameters import normalise
from dsd_runtime.schedule import Ranges, to_triples
from dsd_runtime.usage import UsageError

SPECULATIVE: Final = "--speculative-config"
SPEC_FLAGS: Final[Mapping[str, str]] = {
    "--spec-method": "method",
    "--spec-model": "model",
    "--spec-tokens": "num_speculative_tokens",
}
"""Options that stand for a key of the speculative config."""


@dataclass(frozen=True)
class Use:
    """One use of an option: which, its dotted keys if any, its value, and the words it takes up."""

    canonical: str
    keys: tuple[str, ...]
    value: str
    words: range


def uses(arguments: Sequence[str]) -> Iterator[Use]:
    """Each option that is clear, with its first value, in order. What follows `--` is no option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for given in read(arguments[:end]):
        option = given.option
        if option is None or option.canonical is None:
            continue
        keys = tuple(given.item.partition("=")[0].split(".")[1:]) if option.dotted else ()
        value = option.value if option.value is not None else next(iter(given.values), "")
        words = range(given.position, given.position + 1 + len(given.values))
        yield Use(option.canonical, keys, value, words)


def with_config_file(arguments: Sequence[str]) -> list[str]:
    """The arguments with those of vLLM's own config file before them, so that the command line wins.

    A file that cannot be read counts as empty: vLLM says what is wrong with it. Raises UsageError for a value that
    vLLM cannot pass on.
    """
    if "--config" not in arguments[:-1]:
        return list(arguments)
    path = Path(arguments[list(arguments).index("--config") + 1])
    try:
        data = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError):
        return list(arguments)
    return [*(config_file_words(data, str(path)) if isinstance(data, dict) else ()), *arguments]


def config_file_words(data: Mapping[Any, Any], name: str) -> list[str]:
    """The command line that the content of vLLM's config file `name` stands for; raises UsageError."""
    return [word for key, value in data.items() for word in _words(name, str(key), value)]


def _words(path: str, key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)] if value else []
    if not isinstance(value, dict):
        return [f"--{key}", str(value)]
    try:
        return [f"--{key}", json.dumps(value)]
    except TypeError as error:
        raise UsageError(f"config file {path} of vLLM: {key}: {error}; put a date in quotes") from error


def last_value(arguments: Sequence[str], canonical: str) -> str | None:
    """The value of an option, where it is given: the last one counts."""
    return next((use.value for use in reversed(list(uses(arguments))) if use.canonical == canonical), None)


def speculative_config(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The speculative config that vLLM will see, keys in its own spelling; None without one. Raises UsageError.

    Dotted keys together replace a JSON argument, wherever they stand.
    """
    config: dict[str, Any] | None = None
    dotted: dict[str, Any] = {}
    flags: dict[str, Any] = {}
    for use in uses(with_config_file(arguments)):
        if use.canonical == SPECULATIVE and use.keys:
            _set(dotted, use.keys, use.value)
        elif use.canonical == SPECULATIVE:
            config = _object(use.value)
        elif use.canonical in SPEC_FLAGS:
            flags[SPEC_FLAGS[use.canonical]] = use.value
    config = dotted or config
    if config is None and not flags:
        return None
    return flags | {normalise(key): value for key, value in (config or {}).items()}


def _object(text: str) -> dict[str, Any] | None:
    if text in ("", "null", "None"):
        return None  # vLLM then speculates not at all
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{SPECULATIVE} is not valid JSON: {error}; `dsd schedule convert` may say why") from error
    if not isinstance(data, dict):
        raise UsageError(f"{SPECULATIVE} must be a JSON object")
    return data


def _set(config: dict[str, Any], keys: Sequence[str], text: str) -> None:
    *parents, last = keys
    for key in parents:
        inner = config.setdefault(key, {})
        config = inner if isinstance(inner, dict) else config
    if last.endswith("+"):
        config[last.removesuffix("+")] = text.split(",")
        return
    try:
        config[last] = json.loads(text)
    except ValueError:
        config[last] = text


def with_table(arguments: Sequence[str], ranges: Ranges) -> list[str]:
    """`arguments` with the schedule as vLLM's own table; unchanged where nothing is speculated."""
    config = speculative_config(arguments)
    if config is None:
        return list(arguments)
    dropped = {i for use in uses(arguments) if use.canonical == SPECULATIVE for i in use.words}
    flags = {SPEC_FLAGS[use.canonical] for use in uses(with_config_file(arguments)) if use.canonical in SPEC_FLAGS}
    rest = {key: value for key, value in config.items() if key not in flags}
    kept = [word for i, word in enumerate(arguments) if i not in dropped]
    return before_values(kept, [SPECULATIVE, json.dumps(rest | {TABLE_KEY: to_triples(ranges)})])


def before_values(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """`arguments` with `options` at their end, but ahead of `--`, after which vLLM takes every word for a value."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], *options, *arguments[end:]]
