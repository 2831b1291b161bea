"""Run targets of the Makefile at the same time: `python -m tools.side_by_side TARGET…`.

Half of what a stage of the tests does is waiting: for an engine to start, for an API server to answer. Two stages side
by side fill each other's pauses. Every line of output carries its target's name; all targets run to their end, and the
exit status is that of the first one that failed.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import Final

from tools.cluster.paths import REPOSITORY

_STOP_SECONDS: Final = 120.0
"""What a stage gets to clean up after itself (engines, API servers) when this process is told to end."""

_output: Final = threading.Lock()


class Target:
    """One target while it runs, in a process group of its own, its output passed on line by line."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self._prefix = f"{name:<{width}} | "
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [os.environ.get("MAKE", "make"), name],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._pass_on)
        self._reader.start()

    def wait(self) -> int:
        """The exit status, when all of its output is out."""
        status = self._process.wait()
        self._reader.join()
        _say(f"{self._prefix}{'failed' if status else 'passed'} after {time.monotonic() - self._started:.0f} s")
        return status

    def stop(self) -> None:
        """End the whole group: in peace first, so that what it started is stopped, too."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)
                try:
                    self._process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    continue

    def _pass_on(self) -> None:
        for line in self._process.stdout or ():
            _say(self._prefix + line.rstrip("\n"))


def _say(line: str) -> None:
    with _output:
        print(line, flush=True)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)  # unwinds, so that the targets are stopped


def main(names: list[str]) -> int:
    """Exit status 0 if every target ended well."""
    if not names:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, _end)
    width = max(map(len, names))
    running = [Target(name, width) for name in names]
    try:
        failed = [status for target in running if (status := target.wait())]
    finally:
        for target in running:
            target.stop()
    return failed[0] if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
