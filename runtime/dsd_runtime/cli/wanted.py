"""The schedule that somebody wants, from the command line, a file or stdin."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from dsd_runtime import config_file
from dsd_runtime.cli.errors import InputError
from dsd_runtime.convert import ConvertError, read_table
from dsd_runtime.convert.keys import TABLE_KEY
from dsd_runtime.convert.report import Report
from dsd_runtime.parameters import normalise
from dsd_runtime.protocol import ConfigFile
from dsd_runtime.schedule import MAX_DWELL_STEPS, MAX_MARGIN_PERCENT, Ranges, Smoothing, from_triples

STDIN: Final = "-"
T = TypeVar("T")
_SMOOTHING: Final = re.compile(r"\s*(dwellSteps|marginPercent)\s*=\s*(\d{1,9})\s*")


@dataclass(frozen=True)
class Wanted:
    """A schedule to set. `says_smoothing`: a file says everything, so one without smoothing means off."""

    ranges: Ranges
    smoothing: Smoothing | None = None
    says_smoothing: bool = False


def from_short(text: str) -> Wanted:
    """`1-16:3,17-:0`; raises InputError."""
    if not text.strip()[:1].isdigit() and Path(text).exists():
        raise InputError(f"{text} is a file: give it with -f {text}")
    return Wanted(_table(text, "schedule"))


def from_file(name: str) -> Wanted:
    """A schedule file (YAML or JSON), a bare list of its ranges, or vLLM's table; `-` is stdin. Raises InputError."""
    return _read(name, _parsed)


def from_content(content: bytes, name: str) -> Wanted:
    """The same, of a content that was read already; `name` is for messages. Raises InputError."""
    try:
        return _parsed(content)
    except config_file.ConfigFileError as error:
        raise InputError(f"{'stdin' if name == STDIN else name}: {error}") from error


def read_document(name: str) -> ConfigFile:
    """A schedule file; `-` is stdin. Raises InputError."""
    return _read(name, config_file.parse)


def _read(name: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(sys.stdin.buffer.read() if name == STDIN else config_file.read_bytes(Path(name)))
    except config_file.ConfigFileError as error:
        raise InputError(f"{'stdin' if name == STDIN else name}: {error}") from error


def smoothing(text: str) -> Smoothing | None:
    """`dwellSteps=20,marginPercent=10` or `off`; raises InputError."""
    if text.strip().lower() == "off":
        return None
    values: dict[str, int] = {}
    for part in text.split(","):
        found = _SMOOTHING.fullmatch(part)
        limit = {"dwellSteps": MAX_DWELL_STEPS, "marginPercent": MAX_MARGIN_PERCENT}.get(found[1], 0) if found else 0
        if found is None or found[1] in values or int(found[2]) > limit:
            raise InputError(
                f"--smoothing {text}: write off, or dwellSteps=N,marginPercent=N with numbers up to {MAX_DWELL_STEPS} "
                f"and {MAX_MARGIN_PERCENT}",
            )
        values[found[1]] = int(found[2])
    return Smoothing(dwell_steps=values.get("dwellSteps", 0), margin_percent=values.get("marginPercent", 0))


def _parsed(content: bytes) -> Wanted:
    data = config_file.load_yaml(content)
    if isinstance(data, Mapping):
        _refuse_other_kinds(data)
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        content = json.dumps({"ranges": data}).encode()
    elif isinstance(data, list | str):
        return Wanted(_table(data, "schedule"))
    config = config_file.parse(content)
    return Wanted(config.ranges, config.smoothing, says_smoothing=True)


def _refuse_other_kinds(data: Mapping[str, Any]) -> None:
    if "apiVersion" in data and "kind" in data:
        raise config_file.ConfigFileError("this is a Kubernetes resource; use kubectl apply -f")
    if {normalise(str(key)) for key in data} & {"method", "num_speculative_tokens", TABLE_KEY}:
        raise config_file.ConfigFileError("this is a speculative config of vLLM; see dsd schedule convert --help")


def _table(value: Any, field: str) -> Ranges:
    report = Report()
    rows = read_table(value, field, report)
    try:
        report.raise_problems()
    except ConvertError as error:
        raise InputError(str(error)) from error
    return from_triples(rows)
