"""Shows how far a change is: a bar on a terminal, a line for each step elsewhere. On stderr, stdout is the result's."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from kubectl_dsd.output import console
from kubectl_dsd.schedule.waiting import Progress


@contextmanager
def shown(quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """What to call with each look."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with Bars(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            console=console(stderr=True), transient=True,
        ) as bars:  # fmt: skip
            task = bars.add_task("waiting for the operator", total=None)
            yield lambda found: bars.update(
                task, description=words(found), total=found.total or None, completed=found.applied
            )
    else:
        yield _Lines()


class _Lines:
    """Prints what has changed since the last look."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, found: Progress) -> None:
        text = words(found)
        if text != self._last:
            click.echo(text, err=True)
        self._last = text


def words(found: Progress) -> str:
    """One line."""
    if not found.seen:
        return found.message or "waiting for the operator"
    starting = f", {len(found.starting)} still start" if found.starting else ""
    return f"{found.applied} of {found.total} pods use the schedule{starting}"
