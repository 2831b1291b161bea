"""Metric files that do not end the process when their folder is full or read-only.

prometheus_client maps a sparse file into memory. Where the file system has no room left for a page of it, the first
write to that page is a SIGBUS, and the engine is dead. Here every page is allocated before it is mapped, and what finds
no room stays in memory: the process goes on, and the series appear as soon as there is room. `plugin` sets this for all
processes of vLLM, so that vLLM's own series are covered too; `engine` shows `fault` in the status.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import mmap_dict, values

logger = logging.getLogger("vllm.dsd.metric_files")

FIRST_BYTES: Final = 1 << 16
"""Size of a new file, as prometheus_client makes it."""

RETRY_SECONDS: Final = 2.0

_faults: dict[str, str] = {}
_waiting: dict[str, Callable[[], None]] = {}
_watchers: list[Callable[[], None]] = []
_lock = threading.Lock()
_retrying: threading.Thread | None = None


def fault() -> str | None:
    """Why some series of this process are missing from /metrics, or out of date; None when none is."""
    with _lock:
        return next(iter(_faults.values()), None)


def watch(changed: Callable[[], None]) -> None:
    """Call `changed` whenever `fault` may answer something else, and now."""
    _watchers.append(changed)
    changed()


def begin(name: str, error: OSError, retry: Callable[[], None]) -> None:
    """The file `name` cannot be written. Logged once; `retry` is called until it no longer raises OSError."""
    global _retrying
    with _lock:
        _waiting[name] = retry
        known = name in _faults
        text = _faults.setdefault(name, f"metrics are incomplete, {name}: {error.strerror}")
        if _retrying is None or not _retrying.is_alive():  # a fork leaves threads behind
            _retrying = threading.Thread(target=_retry_all, name="dsd-metric-files", daemon=True)
            _retrying.start()
    if not known:
        logger.error("%s; the engine goes on, and shows them once there is room", text)
        _tell()


def _retry_all() -> None:
    """The thread that `begin` starts; it ends when nothing waits."""
    global _retrying
    while True:
        time.sleep(RETRY_SECONDS)
        for name in list(_waiting):
            _retry(name)
        with _lock:
            if not _waiting:
                _retrying = None
                return


def _retry(name: str) -> None:
    # Taken out first: a write that fails while this one succeeds puts it in again.
    again = _waiting.pop(name)
    try:
        again()
    except OSError:
        _waiting.setdefault(name, again)
        return
    except Exception:
        # Another kind of error would come again, and must not end the thread that the other files need.
        logger.exception("%s cannot be written", name)
        return
    with _lock:
        ended = name not in _waiting and _faults.pop(name, None) is not None
    if ended:
        logger.warning("%s can be written again", name)
        _tell()


def _tell() -> None:
    for changed in _watchers:
        changed()


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
    """What prometheus_client's values write to: an `AllocatedFile`, and memory for what it has no room for."""

    def __init__(self, filename: str, size: int = FIRST_BYTES) -> None:
        """Open or make it, with room for `size` bytes from the start; raises nothing."""
        self._name = filename
        self._size = size
        self._file: AllocatedFile | None = None
        self._aside: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()  # against the thread that tries again
        try:
            self._file = AllocatedFile(filename, size)
        except OSError as error:
            begin(filename, error, self._retry)

    def read_value(self, key: str) -> tuple[float, float]:
        """Value and time of a series, which begins to exist with it."""
        with self._lock:
            if self._file is None or key in self._aside:
                return self._aside.setdefault(key, (0.0, 0.0))
            try:
                found: tuple[float, float] = self._file.read_value(key)  # type: ignore[no-untyped-call]
            except OSError as error:
                found, fault = self._aside.setdefault(key, (0.0, 0.0)), error
            else:
                return found
        begin(self._name, fault, self._retry)
        return found

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Set a series; never raises OSError."""
        with self._lock:
            if self._file is None or key in self._aside:
                self._aside[key] = (value, timestamp)
                return
            try:
                self._file.write_value(key, value, timestamp)  # type: ignore[no-untyped-call]
            except OSError as error:
                self._aside[key], fault = (value, timestamp), error
            else:
                return
        begin(self._name, fault, self._retry)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            if self._file is not None:
                self._file.close()  # type: ignore[no-untyped-call]

    def _retry(self) -> None:
        with self._lock:
            self._file = self._file or AllocatedFile(self._name, self._size)
            for key in list(self._aside):
                self._file.write_value(key, *self._aside[key])  # type: ignore[no-untyped-call]
                del self._aside[key]
