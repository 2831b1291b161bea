"""Metric files that do not end the process when their folder is full or read-only.

prometheus_client maps a sparse file into memory. Where the file system has no room left for a page of it, the first
write to that page is a SIGBUS, and the engine is dead. Here every page is allocated before it is mapped, and what finds
no room stays in memory: the process goes on, and the series appear as soon as there is room. `plugin` sets this for all
processes of vLLM, so that vLLM's own series are covered too; `engine` shows `fault` in the status.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import mmap_dict, values

logger = logging.getLogger("vllm.dsd.metric_files")

FIRST_BYTES: Final = 1 << 16
"""Size of a new file, as prometheus_client makes it."""

RETRY_SECONDS: Final = 5.0

_faults: dict[str, str] = {}
_watchers: list[Callable[[], None]] = []


def watch(changed: Callable[[], None]) -> None:
    """Call `changed` whenever `fault` may answer something else, and now."""
    _watchers.append(changed)
    changed()


def note(name: str, reason: str | None) -> None:
    """The metrics in the file `name` cannot be written for `reason`, or can again. Logs each once."""
    if reason is not None and name not in _faults:
        _faults[name] = f"metrics are incomplete, {name}: {reason}"
        logger.error("%s; the engine goes on, and shows them once there is room", _faults[name])
    elif reason is None and _faults.pop(name, None) is not None:
        logger.warning("%s can be written again", name)
    else:
        return
    for changed in _watchers:
        changed()


def fault() -> str | None:
    """Why some series of this process are missing from /metrics; None when none is."""
    return next(iter(_faults.values()), None)


def install() -> None:
    """Let prometheus_client keep its values in `EnduringFile`s from now on."""
    values.MmapedDict = EnduringFile  # type: ignore[attr-defined, assignment]


class AllocatedFile(mmap_dict.MmapedDict):
    """A file of values whose pages all exist: raises OSError where prometheus_client would be killed."""

    def __init__(self, filename: str, size: int = FIRST_BYTES) -> None:
        """Open it, or make it with room for `size` bytes; raises OSError."""
        with open(filename, "a+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, max(size, os.fstat(file.fileno()).st_size))
            except OSError:
                if os.fstat(file.fileno()).st_size == 0:
                    os.unlink(filename)  # a reader of the folder fails at an empty file
                raise
        super().__init__(filename)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        capacity: int = self._capacity
        # An entry is its length, its key padded to 8 bytes, value and time.
        while self._used + 4 + len(key.encode()) + 8 + 16 > capacity:
            capacity *= 2
        if capacity > self._capacity:
            os.posix_fallocate(self._f.fileno(), 0, capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]


class EnduringFile:
    """What prometheus_client's values write to: an `AllocatedFile`, and memory for what it has no room for.

    Not thread-safe: prometheus_client calls it under a lock of its own.
    """

    def __init__(self, filename: str, size: int = FIRST_BYTES) -> None:
        """Open or make it, with room for `size` bytes from the start; raises nothing."""
        self._name = filename
        self._size = size
        self._file: AllocatedFile | None = None
        self._aside: dict[str, tuple[float, float]] = {}
        self._tried = 0.0
        try:
            self._file = AllocatedFile(filename, size)
        except OSError as error:
            self._report(error)

    def read_value(self, key: str) -> tuple[float, float]:
        """Value and time of a series, which begins to exist with it."""
        if key in self._aside or self._file is None:
            return self._aside.setdefault(key, (0.0, 0.0))
        try:
            found: tuple[float, float] = self._file.read_value(key)  # type: ignore[no-untyped-call]
        except OSError as error:
            self._report(error)
            return self._aside.setdefault(key, (0.0, 0.0))
        return found

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Set a series; never raises OSError."""
        if self._file is None or key in self._aside:
            self._aside[key] = (value, timestamp)
            self._retry()
            return
        try:
            self._file.write_value(key, value, timestamp)  # type: ignore[no-untyped-call]
        except OSError as error:
            self._aside[key] = (value, timestamp)
            self._report(error)

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()  # type: ignore[no-untyped-call]

    def _retry(self) -> None:
        if time.monotonic() - self._tried < RETRY_SECONDS:
            return
        self._tried = time.monotonic()
        try:
            self._file = self._file or AllocatedFile(self._name, self._size)
            for key in list(self._aside):
                self._file.write_value(key, *self._aside[key])  # type: ignore[no-untyped-call]
                del self._aside[key]
        except OSError:
            return
        note(self._name, None)

    def _report(self, error: OSError) -> None:
        self._tried = time.monotonic()
        note(self._name, error.strerror)
