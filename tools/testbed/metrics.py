"""Reading a pod's Prometheus text: sums of one metric by one of its labels, and what grew between two readings."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

Key = TypeVar("Key")


def by_label(text: str, sample_name: str, label: str) -> dict[str, float]:
    """Sums of the samples called `sample_name` for each value of `label`; a missing label counts as empty."""
    found: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == sample_name:
                found[sample.labels.get(label, "")] += sample.value
    return dict(found)


def total(text: str, sample_name: str) -> float:
    """Sum of all samples called `sample_name`; 0 when there are none."""
    return sum(by_label(text, sample_name, "").values())


def growth(before: Mapping[Key, float], after: Mapping[Key, float]) -> dict[Key, float]:
    """What grew between two readings; series that stood still are left out."""
    return {key: value - before.get(key, 0.0) for key, value in after.items() if value > before.get(key, 0.0)}


def steps_by_k(text: str) -> dict[int, float]:
    """Engine steps so far for each K that was verified (`dsd_steps_total`)."""
    return {int(k): value for k, value in by_label(text, "dsd_steps_total", "k").items()}


def decode_steps_by_k(text: str) -> dict[int, float]:
    """Those of them that only decode, with one K chosen and verified (the count of `dsd_step_duration_seconds`)."""
    return {int(k): value for k, value in by_label(text, "dsd_step_duration_seconds_count", "k").items()}
