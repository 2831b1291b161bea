"""Says how far a profile is and how long the rest takes, on stderr: a bar on a terminal, else a line per window."""

import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from kubectl_dsd.output import console
from kubectl_dsd.profile.plan import duration_text
from kubectl_dsd.profile.window import Sample


class Progress:
    """Progress of `total` windows, of which the plan expects `seconds` in all; use as a context manager."""

    def __init__(self, total: int, seconds: float) -> None:
        self._console = console(stderr=True)
        self._total, self._expected = total, seconds
        self._done, self._started, self._first = 0, time.monotonic(), 0.0
        texts = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
        columns = (texts[0], BarColumn(), MofNCompleteColumn(), texts[1])
        self._bar = Bar(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._task = self._bar.add_task("starting", total=total, left=f"about {duration_text(seconds)}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """What goes on now."""
        self._bar.update(self._task, description=text)
        self._line(text)

    def tell(self, text: str) -> None:
        """Something that must not be overwritten."""
        with suppress(OSError):  # a terminal that was closed must not keep a schedule from being put back
            self._console.print(text)

    def measured(self, sample: Sample) -> None:
        """One more window is done."""
        self._done += 1
        cell, speed = sample.cell, f"{sample.tokens_per_second:.0f} tokens/s"
        text = f"round {cell.round + 1}: {cell.concurrency} at once, K={cell.k}: {speed}"
        left = f"{duration_text(self.left())} left"
        self._bar.update(self._task, completed=self._done, description=text, left=left)
        self._line(f"[{self._done}/{self._total}] {text}, {left}")

    def left(self) -> float:
        """Seconds: from the windows so far, and before the first from the plan."""
        now = time.monotonic()
        if not self._first:
            self._first = now
            return self._expected * (self._total - self._done) / self._total
        return (now - self._first) / max(1, self._done - 1) * (self._total - self._done)

    def _line(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text)
