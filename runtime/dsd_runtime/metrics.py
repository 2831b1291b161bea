"""The `dsd_*` series of the schedule and of the plugin itself; those of the steps are in `step_metrics`.

Made in the engine-core process; they reach /metrics of the API server through prometheus_client's multiprocess
directory: no transport of our own, no private interface of vLLM. Nothing here may end an engine: a full or read-only
directory costs the metrics, and a line in the log.
"""

import threading
from collections.abc import Mapping

from dsd_runtime import __version__, catalogue, compat
from dsd_runtime.multiproc import SeriesFile, Slot, replace_gauges
from dsd_runtime.protocol import ScheduleState


class ScheduleMetrics:
    """The schedule in use and its changes.

    The series of a schedule must vanish with it, so they have a file of their own that is replaced on each change.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._file = SeriesFile("counter", f"{labels['engine']}-schedule")
        self._updates: dict[tuple[str, str], Slot] = {}
        self._lock = threading.Lock()  # the watcher of the config file has a thread of its own

    def count_update(self, source: str, result: str) -> None:
        """Count one proposed schedule."""
        with self._lock:
            slot = self._updates.get((source, result))
            if slot is None:
                labels = self._labels | {"source": source, "result": str(result)}
                slot = self._updates[source, result] = self._file.slot(
                    catalogue.UPDATES, catalogue.UPDATES.sample, labels
                )
            slot.value += 1
            self._file.flush()

    def show(self, schedule: ScheduleState) -> None:
        """Replace the series of the schedule in use."""
        revision = str(schedule.revision.number) if schedule.revision else ""
        info = {"revision": revision, "hash": schedule.hash, "source": schedule.source}
        series = [(catalogue.SCHEDULE_INFO, self._labels | info, 1.0)]
        for r in schedule.ranges:
            bounds = {"start": str(r.start_batch_size), "end": str(r.end_batch_size)}
            series.append((catalogue.SCHEDULE_RANGE, self._labels | bounds, float(r.num_speculative_tokens)))
        replace_gauges(f"dsd-{self._labels['engine']}", series)


def show_plugin(labels: Mapping[str, str], **info: str) -> None:
    """Export `dsd_plugin_info` with version, vllm_version, method, runner and mode, in place of what it said before."""
    replace_gauges(f"dsd-{labels['engine']}-plugin", [(catalogue.PLUGIN, {**labels, **info}, 1.0)])


def show_off(labels: Mapping[str, str]) -> None:
    """Export `dsd_plugin_info` of an engine whose schedule changes only with a restart."""
    show_plugin(labels, version=__version__, vllm_version=compat.gate().vllm_version, method="", runner="", mode="off")
