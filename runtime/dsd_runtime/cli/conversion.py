"""`dsd schedule convert`: vLLM's speculative config into a schedule file, and back."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any, Literal

import click

from dsd_runtime import convert as core
from dsd_runtime.cli import output, wanted
from dsd_runtime.cli.errors import InputError
from dsd_runtime.cli.options import Output, output_option
from dsd_runtime.config_file import MAX_FILE_BYTES
from dsd_runtime.protocol import ConfigFile

EPILOG = """\
\b
Examples:
  dsd schedule convert '{"method": "ngram", "num_speculative_tokens": 3,
    "num_speculative_tokens_per_batch_size": [[1, 64, 3], [65, 512, 0]]}' > schedule.yaml
  dsd schedule convert -f speculative.json -o json
  dsd schedule convert --to vllm -f schedule.yaml \\
    --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'

\b
Exit codes: 0 converted, 2 the input cannot be converted
"""


@click.command(epilog=EPILOG)
@click.argument("text", required=False)
@click.option("-f", "--file", "file", help="Read the input from a file; - for stdin.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["schedule", "vllm"]),
    default="schedule",
    show_default=True,
    help="schedule: take TEXT, vLLM's --speculative-config, apart. vllm: make one out of a schedule file.",
)
@click.option("--speculative-config", "rest", help="With --to vllm: the config without a table, as JSON.")
@click.option("--max-num-seqs", type=click.IntRange(1), help="Of the engine: to note ranges that it can never reach.")
@output_option
def convert(
    text: str | None,
    file: str | None,
    target: Literal["schedule", "vllm"],
    rest: str | None,
    max_num_seqs: int | None,
    output: Output,
) -> None:
    """Turn vLLM's --speculative-config into a schedule file for dsd-serve, or back.

    The schedule goes to stdout, ready for --dsd-config; what remains for --speculative-config stands in a comment at
    its top. What vLLM would do without a word (lower a K, sort, rename) is said in notes on stderr.
    """
    if (text is None) == (file is None):
        raise InputError("give the input either as one argument (in single quotes) or with -f FILE")
    try:
        if target == "schedule":
            to_schedule(text if text is not None else _read(str(file)), max_num_seqs, output)
        else:
            to_vllm(file, rest, output)
    except core.ConvertError as error:
        raise InputError(_problems(error)) from error


def to_schedule(text: str, max_num_seqs: int | None, form: Output) -> None:
    """Print the schedule file of a speculative config."""
    found = core.from_vllm(core.parse_object(text), max_num_seqs)
    _notes(found)
    document = ConfigFile(ranges=found.ranges).dump()
    if form == "json":
        output.print_data({"schedule": document, "speculativeConfig": found.speculative}, form)
        return
    rest = shlex.quote(json.dumps(found.speculative, ensure_ascii=False))
    click.echo(f"# dsd-serve MODEL --dsd-config THIS_FILE --speculative-config {rest}")
    click.echo(output.to_yaml(document), nl=False)


def to_vllm(file: str | None, rest: str | None, form: Output) -> None:
    """Print the speculative config of a schedule file and the rest."""
    if file is None:
        raise InputError("with --to vllm the input is a schedule file: give it with -f FILE")
    if rest is None:
        raise InputError(
            "a schedule file holds no method: give the rest of the config with --speculative-config, such as "
            """'{"method": "ngram", "num_speculative_tokens": 3}'""",
        )
    config = wanted.read_document(file)
    found = core.to_vllm(config.ranges, core.parse_object(rest))
    _notes(found)
    lost = [name for name in ("revision", "smoothing", "auth") if getattr(config, name) is not None]
    if lost:
        output.note(f"left out, a stock vLLM has no such thing: {', '.join(lost)}")
    if form == "yaml":
        output.print_data(found.for_vllm(), form)
    else:
        click.echo(json.dumps(found.for_vllm(), ensure_ascii=False))


def _read(name: str) -> str:
    try:
        if name == wanted.STDIN:
            return sys.stdin.buffer.read(MAX_FILE_BYTES).decode()
        with Path(name).open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise InputError(f"{name}: is no text") from error


def _notes(conversion: core.Conversion) -> None:
    for found in conversion.notes:
        output.note(f"{found.field}: {found.message}")


def _problems(error: core.ConvertError) -> str:
    lines: list[Any] = [f"{p.field}: {p.message}" if p.field else p.message for p in error.problems]
    return "\n  ".join(["this cannot be converted:", *lines]) if len(lines) > 1 else str(lines[0])
