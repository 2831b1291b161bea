"""The gauges of each resource's pods, read off its status: wanted, ready, and by what is known of their schedule.

Part of `metrics`. Dashboards could count ready engines from the engines' own series, but not those that are missing.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge

_STATES: Final = ("applied", "unknown", "out_of_sync")


class PodGauges:
    """Series by resource; they go with it."""

    def __init__(self, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._wanted = Gauge("dsd_operator_replicas", "Pods that a DSDDeployment asks for.", labels, registry=registry)
        self._ready = Gauge(
            "dsd_operator_ready_replicas", "Pods of a DSDDeployment that are ready.", labels, registry=registry
        )
        self._schedule = Gauge(
            "dsd_operator_schedule_pods",
            "Pods of a DSDDeployment that can serve: applied, unknown (starting or out of reach) or out_of_sync.",
            [*labels, "state"],
            registry=registry,
        )

    def set(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        """Publish what a status says; one that says nothing of pods (an unreadable resource) takes the series away."""
        schedule, (ready, _, wanted) = status.get("schedule"), str(status.get("ready", "")).partition("/")
        if not wanted or not schedule:
            self.remove(namespace, name)
            return
        self._wanted.labels(namespace, name).set(int(wanted))
        self._ready.labels(namespace, name).set(int(ready))
        applied, unknown = schedule["podsApplied"], schedule["podsUnknown"]
        counts = (applied, unknown, schedule["podsTotal"] - applied - unknown)
        for state, count in zip(_STATES, counts, strict=True):
            self._schedule.labels(namespace, name, state).set(count)

    def remove(self, namespace: str, name: str) -> None:
        """The resource is gone."""
        for gauge in (self._wanted, self._ready):
            with contextlib.suppress(KeyError):
                gauge.remove(namespace, name)
        for state in _STATES:
            with contextlib.suppress(KeyError):
                self._schedule.remove(namespace, name, state)
