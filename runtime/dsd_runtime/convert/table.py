"""A schedule in any spelling that people use for it: vLLM's list, a mapping, a text.

vLLM takes only `[[start, end, K], …]`; the other forms come from its earlier versions, from launch scripts and from our
own command line. What could mean two things is refused.
"""

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from dsd_runtime.convert.numbers import whole
from dsd_runtime.convert.report import Report
from dsd_runtime.schedule import MAX_BATCH_SIZE, MAX_RANGES, Triple

_SPAN: Final = re.compile(r"\s*(\d{1,18})\s*(-\s*(\d{0,18})\s*)?")
_SHORT: Final = re.compile(r"\s*(\d{1,18}\s*(?:-\s*\d{0,18})?)\s*:\s*(\d{1,18})\s*")
_COLONS: Final = re.compile(r"\s*(\d{1,18})\s*:\s*(\d{1,18})\s*:\s*(\d{1,18})\s*")

SHORT_FORM: Final = "1-16:3,17-64:1,65-:0"
"""An example of the short form: ranges of batch sizes, each with its K; the last may stay open."""


def read_table(value: Any, field: str, report: Report) -> list[Triple]:
    """The rows of a schedule in ascending order; problems go to `report`, and then the rows mean nothing."""
    before = len(report.problems)
    rows = _rows(value, field, report)
    if len(report.problems) > before:
        return []
    if rows != sorted(rows, key=lambda row: row[0]):
        report.note(field, "the ranges were not in order; sorted by their start, as vLLM does")
        rows = sorted(rows, key=lambda row: row[0])
    _check(rows, field, report)
    return rows


def _rows(value: Any, field: str, report: Report) -> list[Triple]:
    if isinstance(value, str):
        return _text_rows(value, field, report)
    if isinstance(value, Mapping):
        report.note(field, "written as a mapping, which vLLM does not take; read as ranges")
        return [row for key, k in value.items() if (row := _span_row(key, k, field, report))]
    if isinstance(value, list | tuple):
        return _list_rows(value, field, report)
    report.problem(field, "must be a list of [start, end, K]")
    return []


def _text_rows(text: str, field: str, report: Report) -> list[Triple]:
    parts = [part for part in text.split(",") if part.strip()]
    if parts and all(_SHORT.fullmatch(part) for part in parts):
        pairs = [part.rsplit(":", 1) for part in parts]
        return [row for span, k in pairs if (row := _span_row(span, k, field, report))]
    if parts and all(_COLONS.fullmatch(part) for part in parts):
        return [(int(a), int(b), int(k)) for a, b, k in (part.split(":") for part in parts)]
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        report.problem(field, f"{text!r} is no schedule; write it like {SHORT_FORM}, or as [[1, 16, 3], [17, 64, 1]]")
        return []
    if isinstance(data, str):
        report.problem(field, "a text within a text; write the list itself")
        return []
    report.note(field, "written as a text, which vLLM does not take; read as ranges")
    return _rows(data, field, report)


def _span_row(span: Any, k: Any, field: str, report: Report) -> Triple | None:
    found = _SPAN.fullmatch(str(span))
    tokens = whole(k)
    if found is None or tokens is None:
        report.problem(field, f"{span!r}: {k!r} is no range with its K; write it like {SHORT_FORM}")
        return None
    start, dash, end = found.groups()
    return int(start), int(end) if end else MAX_BATCH_SIZE if dash else int(start), tokens


def _list_rows(rows: list[Any] | tuple[Any, ...], field: str, report: Report) -> list[Triple]:
    if not rows:
        report.problem(field, "is empty; a schedule needs at least one range. To switch speculation off use K=0")
    if len(rows) == 3 and all(whole(item) is not None for item in rows):
        report.problem(field, f"must be a list of rows; write [{json.dumps(list(rows))}]")
        return []
    return [triple for i, row in enumerate(rows) if (triple := _row(row, f"{field}[{i}]", report))]


def _row(row: Any, field: str, report: Report) -> Triple | None:
    if isinstance(row, Mapping):
        report.problem(field, "is an object; vLLM's rows are lists, [start, end, K]")
    elif not isinstance(row, list | tuple) or len(row) < 3:
        report.problem(field, "must be a list of three numbers, [start, end, K]")
    elif len(row) > 3:
        report.problem(
            field, f"has {len(row)} numbers: a second axis (context length) is not supported, here or in vLLM"
        )
    elif row[1] is None:
        report.problem(field, f"has no end; for an open range write a large number, such as {MAX_BATCH_SIZE}")
    elif any(whole(item) is None for item in row):
        report.problem(field, f"{json.dumps(list(row))}: start, end and K must be whole numbers")
    else:
        start, end, k = (whole(item) or 0 for item in row)
        return start, end, k
    return None


def _check(rows: list[Triple], field: str, report: Report) -> None:
    """vLLM's own rules (`validate_and_normalize_dynamic_sd_schedule`), and the limits of ours."""
    if len(rows) > MAX_RANGES:
        report.problem(field, f"{len(rows)} ranges; at most {MAX_RANGES} are supported")
    for start, end, k in rows:
        if start < 1 or end < start or k < 0:
            report.problem(field, f"[{start}, {end}, {k}]: start must be at least 1, end not below it, K not negative")
        if end > MAX_BATCH_SIZE:
            report.problem(field, f"[{start}, {end}, {k}]: the largest batch size is {MAX_BATCH_SIZE}")
    if rows and rows[0][0] > 1:
        report.problem(
            field, f"the first range starts at {rows[0][0]}; it must start at 1, so add what K is below that"
        )
    for before, after in pairwise(rows):
        if after[0] <= before[1]:
            report.problem(field, f"[{', '.join(map(str, after))}] overlaps [{', '.join(map(str, before))}]")
