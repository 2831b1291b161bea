"""Probes of the engine. Only the startup probe knows how long loading takes; the other two begin after it."""

import math
from typing import Any, Final

from dsd_runtime.protocol import READY_PATH

PORT_NAME: Final = "http"
_HEALTH: Final = "/health"
_STARTUP_PERIOD_SECONDS: Final = 5


def probes(startup_seconds: int) -> dict[str, Any]:
    """Start-up and liveness ask for vLLM's health, readiness for the schedule too: a pod that cannot have its schedule
    gets no requests, and a restart would not help it. Timeouts are wide: an engine at work on busy CPUs answers late,
    yet answers."""
    attempts = math.ceil(startup_seconds / _STARTUP_PERIOD_SECONDS)
    return {
        "startupProbe": _get(_HEALTH, period=_STARTUP_PERIOD_SECONDS, timeout=5, failures=attempts),
        "readinessProbe": _get(READY_PATH, period=5, timeout=5, failures=3),
        "livenessProbe": _get(_HEALTH, period=10, timeout=10, failures=6),
    }


def _get(path: str, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": PORT_NAME},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
