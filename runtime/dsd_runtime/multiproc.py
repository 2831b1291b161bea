"""Files of prometheus_client's multiprocess mode, written without its metric objects.

Those write a file at each increment, microseconds a time, and can neither add many observations to a histogram at once
nor take a series away. Here a series is a number in memory that `flush` writes when it changed, and a gauge file may be
replaced whole. The API server merges the files into /metrics. Used by `metrics` and `step_metrics` only.
"""

import logging
import math
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from dsd_runtime.catalogue import Family

logger = logging.getLogger("vllm.dsd.metrics")

MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
FILE_BYTES: Final = 1 << 18
"""Taken from the file system at once (`metric_files`), so that what fills the disk later does not matter."""

GAUGE_BYTES: Final = 1 << 16

Gauges = Sequence[tuple[Family, Mapping[str, str], float]]
_latest: dict[Path, Gauges] = {}
_replacing = threading.Lock()


class Slot:
    """One sample: add to `value`, and the file follows at the next flush."""

    __slots__ = ("key", "value", "written")

    def __init__(self, key: str, value: float) -> None:
        self.key = key
        self.value = value
        self.written = value


class SeriesFile:
    """The counters, the histograms or the gauges of one engine core.

    Without the directory, or while it cannot be written, the numbers stay in memory: metrics must not end an engine.
    """

    def __init__(self, kind: Literal["counter", "histogram", "gauge_mostrecent"], engine: str) -> None:
        self._stamped = kind == "gauge_mostrecent"
        self._slots: list[Slot] = []
        self._values: Any = open_values(f"{kind}_dsd-{engine}-{os.getpid()}.db")

    def slot(self, family: Family, sample: str, labels: Mapping[str, str]) -> Slot:
        """A new sample of `family`; its series is on /metrics from now on."""
        from prometheus_client import mmap_dict

        key = mmap_dict.mmap_key(family.name, sample, list(labels), list(labels.values()), family.text)
        slot = Slot(key, self._values.read_value(key)[0] if self._values is not None else 0.0)
        if self._stamped:
            slot.written = math.nan  # a gauge without a time of writing is not shown, not even a 0
        self._slots.append(slot)
        return slot

    def flush(self) -> None:
        """Write what changed."""
        if self._values is None:
            return
        now = time.time() if self._stamped else 0.0
        for slot in self._slots:
            if slot.value != slot.written:
                self._values.write_value(slot.key, slot.value, now)
                slot.written = slot.value


class Histogram:
    """One child of a histogram family; `bounds` are the upper bounds below +Inf."""

    def __init__(self, file: SeriesFile, family: Family, labels: Mapping[str, str], bounds: Sequence[float]) -> None:
        self._bounds = bounds
        name = f"{family.name}_bucket"
        self._sum = file.slot(family, f"{family.name}_sum", labels)
        self._buckets = [file.slot(family, name, {**labels, "le": le}) for le in le_labels(bounds)]

    def observe(self, value: float) -> None:
        """Count one value."""
        self._sum.value += value
        self._buckets[bisect_left(self._bounds, value)].value += 1


def le_labels(bounds: Sequence[float]) -> list[str]:
    """The `le` labels of the bounds, as prometheus_client writes numbers."""
    from prometheus_client.utils import floatToGoString

    return [str(floatToGoString(bound)) for bound in (*bounds, math.inf)]  # type: ignore[no-untyped-call]


def open_values(name: str) -> Any:
    """The named file of the multiprocess directory; None where there is no directory, which is logged."""
    folder = os.environ.get(MULTIPROC_DIR)
    if not folder:
        logger.warning("%s is not set, so /metrics has no dsd_ series; start vLLM with dsd-serve", MULTIPROC_DIR)
        return None
    from dsd_runtime.metric_files import EnduringFile

    return EnduringFile(str(Path(folder) / name), FILE_BYTES)


def replace_gauges(name: str, series: Gauges) -> None:
    """Replace the named gauge file whole, so that series vanish that are not in `series`.

    While it cannot be written the old ones stay, and a fault is noted (`metric_files`). Without the directory there is
    nowhere to show them, and nothing is done.
    """
    folder = os.environ.get(MULTIPROC_DIR)
    if not folder:
        return
    from dsd_runtime import metric_files

    path = Path(folder) / f"gauge_mostrecent_{name}.db"
    try:
        with _replacing:
            _latest[path] = series
            _write_gauges(path, series)
    except OSError as error:
        metric_files.begin(str(path), error, partial(_replace_again, path))


def _replace_again(path: Path) -> None:
    """By the newest series there are: those that failed may be old by now."""
    with _replacing:
        _write_gauges(path, _latest[path])


def _write_gauges(path: Path, series: Gauges) -> None:
    from prometheus_client.mmap_dict import mmap_key

    from dsd_runtime.metric_files import AllocatedFile

    unfinished = path.with_suffix(f".{os.getpid()}.partial")
    unfinished.unlink(missing_ok=True)
    values: Any = AllocatedFile(str(unfinished), GAUGE_BYTES)
    now = time.time()
    for family, labels, value in series:
        values.write_value(
            mmap_key(family.name, family.name, list(labels), list(labels.values()), family.text), value, now
        )
    values.close()
    unfinished.replace(path)
