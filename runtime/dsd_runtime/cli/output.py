"""Prints: tables for people, JSON and YAML for programs."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dsd_runtime.cli.options import Output

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_./:@]+[A-Za-z0-9]+)*")
"""Strings that no reader of YAML takes for something else, but for the words below. Numbers begin with a digit, a sign
or a dot."""

_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"})
"""What one version of YAML or another, or one of its readers, takes for something other than a string."""


class _Dumper(yaml.SafeDumper):
    """Block style, with plain rows (`{startBatchSize: 1, …}`) on one line each, and nothing folded.

    Strings that are not beyond doubt are in double quotes: PyYAML's own choice follows YAML 1.1, and another reader
    takes its plain `1e3` or `0o7` for numbers.
    """

    def represent_str(self, data: str) -> yaml.ScalarNode:
        plain = _PLAIN.fullmatch(data) and data.lower() not in _WORDS
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else '"')

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = set(mapping) == {"startBatchSize", "endBatchSize", "numSpeculativeTokens"}
        return node


_Dumper.add_representer(str, _Dumper.represent_str)


def to_yaml(data: Any) -> str:
    """`data` as YAML, keys in their order, each string on one line. Any reader gets the same values back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def print_data(data: Any, output: Output) -> None:
    """Print `data` for a program."""
    click.echo(
        to_yaml(data) if output == "yaml" else json.dumps(data, indent=2, ensure_ascii=False), nl=output == "json"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], changed: Iterable[bool] = ()) -> Table:
    """A table without frames; rows marked in `changed` are bold."""
    made = Table(*headings, box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    marks = list(changed)
    for i, row in enumerate(rows):
        bold = i < len(marks) and marks[i]
        made.add_row(*(Text(cell, style="bold" if bold else "") for cell in row))
    return made


def print_tables(*parts: Table | str) -> None:
    """Print tables and sentences, with an empty line between them. Lines are never cut or wrapped for a pipe."""
    width = None if sys.stdout.isatty() else 1000
    console = Console(width=width, soft_wrap=True, highlight=False, markup=False)
    for i, part in enumerate(parts):
        if i:
            console.print()
        console.print(part)


def note(text: str) -> None:
    """A remark on stderr, so that stdout can go into a file."""
    click.echo(f"note: {text}", err=True)
