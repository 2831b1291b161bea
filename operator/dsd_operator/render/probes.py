"""Probes of the engine. Only the startup probe knows how long loading takes; the other two begin after it."""

import math
from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.render.lifecycle import END_SECONDS, PAUSE_SECONDS
from dsd_runtime.protocol import READY_PATH

PORT_NAME: Final = "http"
_HEALTH: Final = "/health"
_STARTUP_PERIOD_SECONDS: Final = 5

_END_SECONDS: Final = PAUSE_SECONDS + END_SECONDS
"""For an engine that the kubelet ends for its probe, in place of the pod's grace period. One that hangs never says that
its connections have ended, so its preStop hook would wait all the time to drain, which may be hours."""


def probes(startup_seconds: int) -> dict[str, Any]:
    """Start-up and liveness ask for vLLM's health, readiness for the schedule too: a pod that cannot have its schedule
    gets no requests, and a restart would not help it. Timeouts are wide: an engine at work on busy CPUs answers late,
    yet answers."""
    attempts = math.ceil(startup_seconds / _STARTUP_PERIOD_SECONDS)
    return {
        "startupProbe": _ending(_get(_HEALTH, period=_STARTUP_PERIOD_SECONDS, timeout=5, failures=attempts)),
        "readinessProbe": _get(READY_PATH, period=5, timeout=5, failures=3),
        "livenessProbe": _ending(_get(_HEALTH, period=10, timeout=10, failures=6)),
    }


def patience(probe: Mapping[str, Any]) -> int:
    """Seconds until a startup probe gives up, with Kubernetes' defaults where it says nothing."""
    attempts = int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3))
    return int(probe.get("initialDelaySeconds", 0)) + attempts


def longest_start(pod_spec: Mapping[str, Any]) -> int:
    """Seconds that the slowest container of a rendered pod may take to start, as far as startup probes say."""
    containers = [*pod_spec.get("initContainers", []), *pod_spec["containers"]]
    return max((patience(c["startupProbe"]) for c in containers if "startupProbe" in c), default=0)


def _ending(probe: dict[str, Any]) -> dict[str, Any]:
    """A probe whose failure ends the container."""
    return {**probe, "terminationGracePeriodSeconds": _END_SECONDS}


def _get(path: str, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": PORT_NAME},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
