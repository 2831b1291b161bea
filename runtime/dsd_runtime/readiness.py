"""Readiness: the engine is healthy, and it has begun with the schedule of its config file.

The readiness probe asks vLLM's own `/health` with a query that only we know (`protocol.READY_PATH`), so that an image
without this runtime, or a vLLM that takes no routes from plugins, gets ready by its health alone. `routes` adds this.

Only the beginning waits for the schedule. An engine that has served is not taken out of service for a schedule that has
yet to come or that it refuses: it goes on with the one before, and the status says so. From then on a probe asks
neither the engine cores nor the disk.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dsd_runtime import compat, config_file, resolved
from dsd_runtime.config_file import ConfigFileError
from dsd_runtime.protocol import READY_PATH, ConfigFile
from dsd_runtime.schedule import schedule_hash

_PATH, _, _QUERY = READY_PATH.partition("?")

Status = Mapping[str, Any]


class Readiness:
    """Remembers that the engine has begun."""

    def __init__(self) -> None:
        self._begun = False

    async def problem(self, read_status: Callable[[], Awaitable[Status]]) -> str | None:
        """Why the engine shall get no requests yet; None when only its health matters. `read_status` asks the engine
        cores (an EngineStatus as plain data): until they have begun, and never afterwards."""
        if not self._begun:
            if (missing := await _missing(read_status)) is not None:
                return missing
            self._begun = True
        return None


async def _missing(read_status: Callable[[], Awaitable[Status]]) -> str | None:
    """What of the config file's schedule is not in place; None where there is none to wait for, or the plugin is off:
    vLLM began with the schedule as its own table then."""
    path = resolved.config_path()
    if path is None or compat.gate().mode == "off":
        return None
    try:
        config = config_file.read(path)
    except ConfigFileError as error:
        return str(error)
    status = await read_status()
    if status["mode"] == "off" or all(in_place(core["schedule"], config) for core in status["engines"]):
        return None
    why = (status.get("lastError") or {}).get("message", "the engine cores have yet to take it")
    return f"the schedule of the config file is not in use: {why}"


def in_place(schedule: Status, config: ConfigFile) -> bool:
    """Whether a core uses the file's schedule, or one that counts as newer."""
    revision = schedule.get("revision")
    if config.revision is not None:
        return revision is not None and int(revision["number"]) >= config.revision.number
    wanted = schedule_hash(config.ranges, config.smoothing)
    return bool(schedule["source"] == "http" or schedule["hash"] == wanted)


class ReadinessProbe:
    """ASGI middleware: refuses the readiness probe as long as there is a reason to; health stays vLLM's to tell."""

    def __init__(self, app: Any, refusal: Callable[[], Awaitable[Any]]) -> None:
        """`refusal` returns the response of a refused probe, or None."""
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As ASGI wants it."""
        refused = await self._refusal() if is_probe(scope) else None
        await (self._app if refused is None else refused)(scope, receive, send)


def is_probe(scope: Mapping[str, Any]) -> bool:
    """Whether a request is the readiness probe."""
    # Starlette puts the root path in front of the path, whether or not the client did.
    own = str(scope.get("path", "")).removeprefix(scope.get("root_path", ""))
    return scope["type"] == "http" and own == _PATH and scope["query_string"] == _QUERY.encode()
