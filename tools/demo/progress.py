"""Waiting for a DSDDeployment with visible progress: each change of a condition as it comes, with the time."""

import time
from typing import Final

from tools.cluster.errors import ClusterError
from tools.demo import terminal
from tools.testbed.handle import Handle, is_ready
from tools.testbed.kube import Json

_TIMEOUT_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 10.0
_LOG_WIDTH: Final = 110


def wait_ready(handle: Handle) -> float:
    """Wait until the resource is Ready; returns the seconds it took. Raises ClusterError with the last conditions."""
    started = spoken = time.monotonic()
    shown: dict[str, str] = {}
    while True:
        resource = handle.resource()
        now = time.monotonic()
        news = [line for kind, line in conditions_of(resource).items() if shown.get(kind) != line]
        if news or now - spoken > _PATIENCE_SECONDS:
            _tell(now - started, news or [_last_words(handle)])
            shown, spoken = conditions_of(resource), now
        if is_ready(resource):
            return now - started
        if now - started > _TIMEOUT_SECONDS:
            raise ClusterError(f"{handle.namespace}/{handle.name} is not Ready after {_TIMEOUT_SECONDS:.0f} s: {shown}")
        time.sleep(_POLL_SECONDS)


def _last_words(handle: Handle) -> str:
    """What the engine is doing: the last line of its log."""
    lines = [handle.kube.logs(handle.namespace, pod["metadata"]["name"], "engine", 1) for pod in handle.pods()]
    return terminal.paint("engine: " + " ".join(lines).strip()[:_LOG_WIDTH], "dim")


def _tell(elapsed: float, lines: list[str]) -> None:
    for line in lines:
        terminal.result(f"{terminal.paint(f'{elapsed:5.0f} s', 'dim')}  {line}")


def conditions_of(resource: Json) -> dict[str, str]:
    """One line for each condition."""
    found: list[Json] = (resource.get("status") or {}).get("conditions", [])
    return {c["type"]: _line(c) for c in found}


def _line(condition: Json) -> str:
    colour = "green" if condition["status"] == "True" else "yellow"
    head = terminal.paint(f"{condition['type']}={condition['status']}", colour)
    return f"{head}  {condition['reason']}: {condition.get('message', '')}"
