"""Probes of the engine. Only the startup probe knows how long loading takes; the other two begin after it."""

import math
from typing import Any, Final

PORT_NAME: Final = "http"
_STARTUP_PERIOD_SECONDS: Final = 5


def probes(startup_seconds: int) -> dict[str, Any]:
    """All three ask vLLM's /health. Timeouts are wide: an engine at work on busy CPUs answers late, yet answers."""
    attempts = math.ceil(startup_seconds / _STARTUP_PERIOD_SECONDS)
    return {
        "startupProbe": _health(period=_STARTUP_PERIOD_SECONDS, timeout=5, failures=attempts),
        "readinessProbe": _health(period=5, timeout=5, failures=3),
        "livenessProbe": _health(period=10, timeout=10, failures=6),
    }


def _health(period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/health", "port": PORT_NAME},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
