"""HTTP to the engine pods: read the status, write the schedule. One shared session, every call bounded in time.

Never through a proxy, whatever the environment says: the bearer token would be handed to it in the clear.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

import aiohttp
from pydantic import ValidationError

from dsd_operator.engine.address import PORT, pod_url
from dsd_runtime.protocol import (
    PROBLEM_CONTENT_TYPE,
    SCHEDULE_PATH,
    STATUS_PATH,
    EngineStatus,
    ProblemDocument,
    SchedulePut,
)

CONNECT_SECONDS: Final = 1.0
"""A pod of the same cluster answers a connect in milliseconds, or something drops our packets."""

TOTAL_SECONDS: Final = 12.0
"""A schedule is in use after one engine step, and a step may hold a long prefill: the runtime waits 10 s for it."""

IDLE_SECONDS: Final = 2.0
"""A connection is kept from the question to the schedule that may follow. Less than vLLM's server keeps it (5 s), which
would otherwise close it just when it is used again; and thousands of pods are no thousands of open connections."""

_Model = TypeVar("_Model", EngineStatus, ProblemDocument)

_Part = TypeVar("_Part")

_SHARED_PARTS: Final = 4096

_MAX_ANSWER_BYTES: Final = 1024 * 1024


class NoAnswer(Exception):  # noqa: N818 - said by the pod, not a fault of ours
    """The pod cannot be reached, or what answered was not our runtime. Says nothing about its schedule."""


@dataclass
class Problem(Exception):  # noqa: N818 - the protocol's own word
    """The runtime answered with a problem document."""

    status: int
    document: ProblemDocument

    def __str__(self) -> str:
        details = "; ".join(f"{e.field}: {e.message}" for e in self.document.errors)
        return self.document.detail + (f" ({details})" if details else "")


class NoPlugin(Exception):  # noqa: N818
    """vLLM answers, and knows nothing of our routes."""


class EngineClient:
    """One connection pool to all pods. `open` inside the event loop before use, `close` after."""

    def __init__(self, port: int = PORT, connect: float = CONNECT_SECONDS, total: float = TOTAL_SECONDS) -> None:
        self._port = port
        self._timeout = aiohttp.ClientTimeout(total=total, sock_connect=connect)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the session."""
        # No limit on connections: pods that hang must not hold up the others.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, trust_env=False, auto_decompress=False
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def status(self, ip: str) -> EngineStatus:
        """What the engine uses now; raises NoAnswer, NoPlugin or Problem."""
        return await self._call("GET", ip, STATUS_PATH)

    async def put(self, ip: str, token: str, schedule: SchedulePut) -> EngineStatus:
        """Bring a schedule into use on every engine core of the pod; raises NoAnswer, NoPlugin or Problem."""
        headers = {"Authorization": f"Bearer {token}"}
        return await self._call("PUT", ip, SCHEDULE_PATH, json=schedule.dump(), headers=headers)

    async def _call(self, method: str, ip: str, path: str, **arguments: Any) -> EngineStatus:
        if self._session is None:
            raise RuntimeError("EngineClient.open() comes before the first call")
        try:
            url = pod_url(ip, path, self._port)
            async with self._session.request(method, url, allow_redirects=False, **arguments) as response:
                body = await response.content.read(_MAX_ANSWER_BYTES)
                return _understand(response.status, response.content_type, body)
        except TimeoutError as error:
            raise NoAnswer("no answer in time") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error


def _understand(status: int, content_type: str, body: bytes) -> EngineStatus:
    if status == 200:
        return _shared(_parse(EngineStatus, body))
    if content_type == PROBLEM_CONTENT_TYPE:
        raise Problem(status, _parse(ProblemDocument, body))
    if status in (404, 405) and content_type == "application/json":
        raise NoPlugin("the server in the pod has no DSD routes: it does not run the DSD runtime")
    # A mesh's sidecar or a proxy refuses in its own words; ours always come as a problem document.
    raise NoAnswer(f"something other than the engine answered {status}")


@lru_cache(maxsize=_SHARED_PARTS)
def _one(part: _Part) -> _Part:
    """The first of equal parts."""
    return part


def _shared(status: EngineStatus) -> EngineStatus:
    """The same status, with the parts that thousands of pods have in common in memory once."""
    cores = tuple(core.model_copy(update={"schedule": _one(core.schedule)}) for core in status.engines)
    common = {name: _one(getattr(status, name)) for name in ("versions", "envelope", "schedule")}
    return status.model_copy(update={**common, "engines": cores})


def _parse(model: type[_Model], body: bytes) -> _Model:
    try:
        # An engine of a newer version says more; what this one knows of it is still true.
        return model.model_validate_json(body, extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NoAnswer(f"the answer is not understood: {where}: {first['msg']}") from error
