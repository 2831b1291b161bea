"""Progress for a person: what is being done, how far, and how long it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Print one line of progress to standard error (standard output is for results)."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step, run the body, and say how many seconds it took."""
    interactive = sys.stderr.isatty()
    print(f"{text} ...", end=" " if interactive else "\n", file=sys.stderr, flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        say("failed" if interactive else f"{text}: failed after {time.monotonic() - start:.1f} s")
        raise
    seconds = f"{time.monotonic() - start:.1f} s"
    say(seconds if interactive else f"{text}: {seconds}")
