"""vLLM's real parser of `vllm serve`, and what it makes of single options."""

import contextlib
import io
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from typing import Any

from dsd_runtime.vllm_options import OPTIONS
from tools.generate_option_table import serve_parser

_VALUES = ("1", "0.5", "auto", "{}", "x", "[]", "2025.1.1", "none", "0", "a=b", '{"a": 1}')


@cache
def parser() -> Any:
    """Built once; it takes seconds."""
    return serve_parser()


@cache
def command_line() -> Any:
    """The parser of the whole command line; only this one reads `--config FILE`. Parse `["serve", …]` with it."""
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parent = FlexibleArgumentParser()
    ServeSubcommand().subparser_init(parent.add_subparsers())
    return parent


@cache
def canonical_of() -> dict[str, str]:
    """dest -> canonical spelling of the option."""
    return {a.dest: next(o for o in a.option_strings if o in OPTIONS) for a in parser()._actions if a.option_strings}


def named_by(items: Sequence[str]) -> set[str] | None:
    """The canonical options that vLLM's parser finds in `items`; None if it refuses them.

    Every option starts from a list of its own; those that were given no longer have it.
    """
    unset: dict[str, list[object]] = {action.dest: [] for action in parser()._actions}
    namespace = Namespace(**unset)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            parser().parse_args(["acme/model", *items], namespace)
    except SystemExit as stop:
        return None if stop.code else {"--help"}
    except (ValueError, IndexError, TypeError, AssertionError):
        return None  # vLLM's own preprocessing stops too
    changed = {dest for dest, marker in unset.items() if getattr(namespace, dest) is not marker}
    return {canonical_of()[dest] for dest in changed if dest in canonical_of()}


@cache
def good_value(canonical: str) -> str | None:
    """A value that vLLM's parser takes for this option; None for a switch."""
    if OPTIONS[canonical][0] in ("0", "!"):
        return None
    (action,) = [a for a in parser()._actions if canonical in a.option_strings]
    for value in (*map(str, action.choices or ()), *_VALUES):
        if named_by([f"{canonical}={value}"]) == {canonical}:
            return value
    raise AssertionError(f"no value found for {canonical}; add one to the candidates")
