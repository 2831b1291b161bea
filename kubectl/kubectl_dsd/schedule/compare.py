"""Several schedules side by side: a row wherever one of them changes its K. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsd_runtime.cli.describe import smoothing_text, span
from dsd_runtime.schedule import Lookup
from kubectl_dsd.wanted import Schedule


@dataclass(frozen=True)
class Column:
    """One schedule and whose it is."""

    title: str
    schedule: Schedule


def rows(columns: Sequence[Column]) -> Iterator[tuple[str, ...]]:
    """(batch sizes, K of each column); neighbouring rows with the same K everywhere are one."""
    lookups = [Lookup.of(column.schedule.ranges) for column in columns]
    starts = sorted({r.start_batch_size for column in columns for r in column.schedule.ranges} | {1})
    merged: list[tuple[int, tuple[int, ...]]] = []
    for start in starts:
        found = tuple(lookup(start) for lookup in lookups)
        if not merged or merged[-1][1] != found:
            merged.append((start, found))
    for i, (start, tokens) in enumerate(merged):
        end = merged[i + 1][0] - 1 if i + 1 < len(merged) else None
        yield (span(start, end), *map(str, tokens))


def differs(row: Sequence[str]) -> bool:
    """Whether the columns of a row disagree."""
    return len(set(row[1:])) > 1


def smoothing_line(columns: Sequence[Column]) -> str:
    """Smoothing of all columns in one line."""
    texts = [smoothing_text(column.schedule.smoothing) for column in columns]
    if len(set(texts)) == 1:
        return f"smoothing: {texts[0]}"
    return "smoothing: " + ", ".join(
        f"{column.title.lower()} {text}" for column, text in zip(columns, texts, strict=True)
    )
