"""Why an engine ended, for the kubelet: the first cause, in the container's termination message.

Without it the kubelet keeps the last 2048 bytes of the log. A wrong configuration ends the API server, and is there;
what ends an engine core or a worker is not: the API server's own traceback follows, which says "see root cause above".
`plugin` installs this in every process. Outside a pod there is no such file, and nothing happens.
"""

import logging
import os
from pathlib import Path
from typing import Final

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


class LastWords(logging.Handler):
    """Writes the exception of such a message to the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.ERROR)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: the engine has trouble enough."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and str(record.msg).startswith(EVENTS):
            note(self._path, sentence(error))


def sentence(error: BaseException) -> str:
    """As the last line of a traceback has it, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_LENGTH]


def note(path: Path, text: str) -> None:
    """Add a line, unless it is there: several workers fail for one reason."""
    try:
        with path.open("r+", encoding="utf-8", errors="replace") as file:
            known = file.read().splitlines()
            if text not in known and len(known) < MAX_LINES:
                file.write(text + "\n")
    except OSError:
        return


def install() -> None:
    """Listen to vLLM's log, where there is a file to write to."""
    path = Path(os.environ.get(PATH_ENV, DEFAULT_PATH))
    if path.is_file():
        logging.getLogger("vllm").addHandler(LastWords(path))
