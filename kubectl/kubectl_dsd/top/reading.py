"""One look at an engine's /metrics, and what grew between two looks. Pure; `profile` measures with it too.

Only the series of the plugin (docs/reference/metrics.md) and a few gauges of vLLM are read; the rest is not parsed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]
Series = Mapping[str, Mapping[Labels, float]]
"""Sample name -> sorted labels -> value."""

WANTED: Final = ("dsd_", "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")

STEPS: Final = "dsd_steps_total"
EMITTED: Final = "dsd_emitted_tokens_total"
DRAFTED: Final = "dsd_draft_tokens_total"
ACCEPTED: Final = "dsd_accepted_tokens_total"
BATCH_SUM: Final = "dsd_step_batch_size_sum"
BATCH_COUNT: Final = "dsd_step_batch_size_count"
PRICED_SECONDS: Final = "dsd_step_duration_seconds_sum"
PRICED_STEPS: Final = "dsd_step_duration_seconds_count"
K_NOW: Final = "dsd_num_speculative_tokens"
REVISION: Final = "dsd_schedule_revision_info"
PLUGIN: Final = "dsd_plugin_info"
RUNNING: Final = "vllm:num_requests_running"
WAITING: Final = "vllm:num_requests_waiting"
KV_CACHE: Final = "vllm:kv_cache_usage_perc"


@dataclass(frozen=True)
class Reading:
    """The series of one engine process at a time; `at` in seconds of a monotonic clock."""

    at: float
    series: Series

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples called `name` that carry `labels`; 0 when there are none."""
        return total(self.series, name, labels)

    @property
    def whole(self) -> bool:
        """Whether counters and histograms are of the same steps, each of which is in both.

        An engine keeps them in two files and writes one after the other; what is read in between is of two times.
        """
        return self.total(STEPS) == self.total(BATCH_COUNT)

    def labels_of(self, name: str) -> list[dict[str, str]]:
        """The labels of each sample called `name`."""
        return [dict(labels) for labels in self.series.get(name, {})]

    def values(self, name: str) -> list[float]:
        """The values of the samples called `name`, one per engine core for a gauge."""
        return [value for _, value in sorted(self.series.get(name, {}).items())]


@dataclass(frozen=True)
class Growth:
    """What the counters of one engine process grew by in `seconds`."""

    seconds: float
    series: Series

    def total(self, name: str, **labels: str) -> float:
        """The growth of all samples called `name` that carry `labels`."""
        return total(self.series, name, labels)


def total(series: Series, name: str, labels: Mapping[str, str]) -> float:
    """The sum of the samples called `name` whose labels include `labels`."""
    wanted = set(labels.items())
    return sum(value for found, value in series.get(name, {}).items() if wanted <= set(found))


def read(text: str, at: float) -> Reading:
    """Parse a Prometheus text; raises ValueError where it is none."""
    found: dict[str, dict[Labels, float]] = defaultdict(dict)
    for family in text_string_to_metric_families("\n".join(_wanted_lines(text)) + "\n"):
        for sample in family.samples:
            found[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return Reading(at, {name: dict(samples) for name, samples in found.items()})


def _wanted_lines(text: str) -> Iterable[str]:
    for line in text.splitlines():
        name = line.removeprefix("# HELP ").removeprefix("# TYPE ")
        if name.startswith(WANTED):
            yield line


def growth(before: Reading, after: Reading) -> Growth:
    """What grew from one reading to a later one of the same process.

    A counter that fell began anew, so all of its value is growth, as in Prometheus' `increase`.
    """
    series = {
        name: {
            labels: _increase(before.series.get(name, {}).get(labels, 0.0), value) for labels, value in found.items()
        }
        for name, found in after.series.items()
    }
    return Growth(after.at - before.at, series)


def _increase(before: float, after: float) -> float:
    return after - before if after >= before else after
