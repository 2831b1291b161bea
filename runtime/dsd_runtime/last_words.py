"""Why an engine ended, for the kubelet: the first cause, in the container's termination message.

Without it the kubelet keeps the last 2048 bytes of the log. What ends an engine core or a worker is not among them: the
API server's own traceback follows, which says "see root cause above". What ends the API server is, yet not always the
exception that it came from. `plugin` installs this in every process, and `serve` writes what it refuses itself.

The first line says which of the `causes` it is, where it is one: an exception knows more than its last line tells.
Outside a pod there is no such file, and nothing happens.
"""

import logging
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

from dsd_runtime.causes import MARK, known_cause

PATH_ENV: Final = "DSD_TERMINATION_LOG"
DEFAULT_PATH: Final = "/dev/termination-log"
"""Kubernetes' default of terminationMessagePath."""

EVENTS: Final = (
    "WorkerProc failed to start",
    "EngineCore failed to start",
    "EngineCore encountered a fatal error",
)
"""How the messages begin with which vLLM 0.32 logs the exception that ends a process (`v1/executor/
multiproc_executor.py`, `v1/engine/core.py`). A worker's exception while it serves need not end anything; where it does,
the engine core's own names it."""

MAX_LINES: Final = 4
"""The first ones count: what fails afterwards, fails because of them. The kubelet reads 4096 bytes."""

MAX_LENGTH: Final = 900

MAX_CHAIN: Final = 8
"""Exceptions behind an exception that are looked at."""


class LastWords(logging.Handler):
    """Writes the exception of such a message to the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.ERROR)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: the engine has trouble enough."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and str(record.msg).startswith(EVENTS):
            note(self._path, sentence(error), reason_of(error))


def sentence(error: BaseException) -> str:
    """As the last line of a traceback has it, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_LENGTH]


def reason_of(error: BaseException) -> str | None:
    """The reason of the known cause in an exception or in those that it came from; None where it is none of them."""
    cause = known_cause("\n".join(sentence(one) for one in chain(error)))
    return cause.reason if cause is not None else None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it came from, the latest first."""
    current: BaseException | None = error
    for _ in range(MAX_CHAIN):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def note(path: Path, text: str, reason: str | None = None) -> None:
    """Add a line, unless it is there: several workers fail for one reason. The first one brings its reason."""
    try:
        with path.open("r+", encoding="utf-8", errors="replace") as file:
            known = file.read().splitlines()
            if not known and reason is not None:
                file.write(f"{MARK}{reason}\n")
            lines = [line for line in known if not line.startswith(MARK)]
            if text not in lines and len(lines) < MAX_LINES:
                file.write(text + "\n")
    except OSError:
        return


def path() -> Path | None:
    """The file, if there is one."""
    found = Path(os.environ.get(PATH_ENV, DEFAULT_PATH))
    return found if found.is_file() else None


def say(text: str, reason: str | None) -> None:
    """Write why this process ends by itself, if there is a file for it."""
    if (found := path()) is not None:
        note(found, text, reason)


def install() -> None:
    """Listen to vLLM's log and to the exception that ends the main process, where there is a file to write to."""
    if (found := path()) is None:
        return
    logging.getLogger("vllm").addHandler(LastWords(found))
    if multiprocessing.parent_process() is None:
        _watch_main(found)


def _watch_main(file: Path) -> None:
    """Note what ends the API server, unless something ended before it: then it only says so."""
    original = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, Exception) and not _has_words(file):
            note(file, sentence(error), reason_of(error))
        original(kind, error, traceback)

    sys.excepthook = excepthook


def _has_words(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return True
