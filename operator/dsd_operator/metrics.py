"""The operator's own metrics. Made once by the entry point and handed in; nothing else touches the Prometheus client.

Labels that name a resource are `dsd_namespace` and `dsd_name`: a scrape adds its own `namespace`, and the two would
clash. Series of a resource go when it goes.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dsd_operator.pod_gauges import PodGauges

_RESOURCE: Final = ("dsd_namespace", "dsd_name")
_PASS_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_APPLY_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """All collectors in one registry of their own."""

    def __init__(self, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each one, which nobody asks for
        self.registry = registry = CollectorRegistry()
        self.reconcile_total = Counter(
            "dsd_operator_reconcile_total",
            "Passes by result: success; retry, something could not be done yet; error, the pass ended early; gone.",
            ["result"],
            registry=registry,
        )
        self.reconcile_duration_seconds = Histogram(
            "dsd_operator_reconcile_duration_seconds",
            "Duration of a reconcile pass.",
            buckets=_PASS_SECONDS,
            registry=registry,
        )
        self._queue_depth = Gauge(
            "dsd_operator_queue_depth", "Resources that wait for a reconcile pass.", registry=registry
        )
        self.schedule_apply_seconds = Histogram(
            "dsd_operator_schedule_apply_seconds",
            "From the operator's notice of a changed schedule to the last ready pod's acknowledgement.",
            buckets=_APPLY_SECONDS,
            registry=registry,
        )
        self._managed = Gauge(
            "dsd_operator_managed_deployments",
            "DSDDeployments by the status of their condition Ready.",
            ["ready"],
            registry=registry,
        )
        for status in ("true", "false", "unknown"):
            self._managed.labels(status)  # 0 from the start
        self._condition = Gauge(
            "dsd_operator_condition",
            "1 for each condition of a DSDDeployment as it stands.",
            [*_RESOURCE, "type", "status", "reason"],
            registry=registry,
        )
        self._engine_restarts = Counter(
            "dsd_operator_engine_restarts_total",
            "Restarts of the engine containers of a DSDDeployment that the operator has seen.",
            _RESOURCE,
            registry=registry,
        )
        self._pods = PodGauges(_RESOURCE, registry)
        self._api_requests = Counter(
            "dsd_operator_api_requests_total",
            "Requests to the API server by verb and status code; code 0: no answer.",
            ["verb", "code"],
            registry=registry,
        )
        build_info = Gauge("dsd_operator_build_info", "Always 1.", ["version"], registry=registry)
        build_info.labels(version).set(1)
        self._conditions: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}

    def api_request(self, verb: str, code: int) -> None:
        """Count one request to the API server."""
        self._api_requests.labels(verb, str(code)).inc()

    def watch_queue(self, depth: Callable[[], float]) -> None:
        """Read the queue's depth whenever somebody scrapes."""
        self._queue_depth.set_function(depth)

    def set_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        """Publish the conditions and pods of one resource in place of what was there."""
        new = {str(c["type"]): (str(c["status"]), str(c["reason"])) for c in status.get("conditions") or ()}
        self._replace(namespace, name, new)
        self._pods.set(namespace, name, status)

    def engine_restarts(self, namespace: str, name: str, new: int) -> None:
        """Count restarts of a resource's engines; 0 makes the series, so that the first restart is an increase."""
        self._engine_restarts.labels(namespace, name).inc(new)

    def remove(self, namespace: str, name: str) -> None:
        """The resource is gone, and its series with it."""
        self._replace(namespace, name, {})
        self._pods.remove(namespace, name)
        with contextlib.suppress(KeyError):
            self._engine_restarts.remove(namespace, name)

    def render(self) -> tuple[bytes, str]:
        """Body and content type for /metrics."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _replace(self, namespace: str, name: str, new: dict[str, tuple[str, str]]) -> None:
        old = self._conditions.pop((namespace, name), {})
        self._count_ready(old, new)
        for kind, (status, reason) in old.items():
            if new.get(kind) != (status, reason):
                self._condition.remove(namespace, name, kind, status, reason)
        for kind, (status, reason) in new.items():
            self._condition.labels(namespace, name, kind, status, reason).set(1)
        if new:
            self._conditions[namespace, name] = new

    def _count_ready(self, old: Mapping[str, tuple[str, str]], new: Mapping[str, tuple[str, str]]) -> None:
        """Move one resource between the counts: counting all of them in each pass would cost more than the pass."""
        if old:
            self._managed.labels(_ready(old)).dec()
        if new:
            self._managed.labels(_ready(new)).inc()


def _ready(conditions: Mapping[str, tuple[str, str]]) -> str:
    return conditions.get("Ready", ("Unknown", ""))[0].lower()
