"""What is wrong with one engine core now, while it goes on serving: for the status and for the gauge `dsd_fault`.

A fault begins, is shown and logged once by whoever finds it, and ends when its cause does. `engine` holds one `Faults`;
a refused PUT is no fault, its sender has the answer.
"""

import datetime as dt
import threading
from collections.abc import Mapping

from dsd_runtime import catalogue, metric_files
from dsd_runtime.multiproc import SeriesFile
from dsd_runtime.protocol import FAULT_SOURCES, Fault, FaultSource


def utc_now() -> str:
    """The time in RFC 3339, in seconds."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Faults:
    """At most one fault of each source. May be used from several threads."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """The series exist from now on, so that a full disk cannot keep them from saying so."""
        self._file = SeriesFile("gauge_mostrecent", f"{labels['engine']}-faults")
        family = catalogue.FAULT
        self._slots = {
            source: self._file.slot(family, family.sample, {**labels, "source": source}) for source in FAULT_SOURCES
        }
        self._now: dict[FaultSource, Fault] = {}
        self._lock = threading.RLock()  # showing a fault may find another: the disk is full
        metric_files.watch(lambda: self.set("metrics", metric_files.fault()))

    def now(self) -> tuple[Fault, ...]:
        """What is wrong, oldest first."""
        with self._lock:
            return tuple(self._now.values())

    def set(self, source: FaultSource, message: str | None) -> None:
        """Begin a fault, replace it by another of the same source, or end it with None."""
        with self._lock:
            if message is None:
                self._now.pop(source, None)
            elif source not in self._now or self._now[source].message != message:
                self._now[source] = Fault(source=source, message=message, since=utc_now())
            self._slots[source].value = float(message is not None)
            self._file.flush()
