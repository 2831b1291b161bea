"""One server for the engines of very many pods: it listens on every address of a loopback network, and each address is
an engine of its own (`fake_engine`), slow or dead if one asks for it.

Made for pods of fake nodes (`fake_nodes`). It runs in a thread of the caller's process, with an event loop. Tokens are
counted and believed: to check a signature is the pods' work, which here would be done on the operator's own cores.
"""

import asyncio
import resource
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Final

from aiohttp import web

from dsd_runtime.protocol import PROBLEM_CONTENT_TYPE, SCHEDULE_PATH, STATUS_PATH, Wire
from tools.testbed.fake_engine import PORT, FakeEngine, problem

_JSON: Final = "application/json"
_START_SECONDS: Final = 60.0
_OTHER_FILES: Final = 1024


@dataclass
class Pod:
    """What answers at one address."""

    engine: FakeEngine = field(default_factory=FakeEngine)
    delay: float = 0.0
    """Seconds before each answer."""
    dead: bool = False
    """Takes connections and never answers."""
    requests: int = 0
    asked: float = 0.0
    """When the last request came (`time.monotonic`)."""
    puts: list[float] = field(default_factory=list)
    """When each schedule came into use (`time.monotonic`)."""

    @property
    def hash(self) -> str:
        """The content hash of the schedule in use."""
        return self.engine.state.current.shown.hash


class FakeEngines:
    """A context manager; `pods` may be read and changed from any thread."""

    def __init__(self, network: IPv4Network) -> None:
        self.pods = {str(address): Pod() for address in network}
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="fake engines", daemon=True)

    def __enter__(self) -> "FakeEngines":
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise TimeoutError(f"the fake engines do not listen after {_START_SECONDS:.0f} s")
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def revive(self, addresses: Iterable[str]) -> None:
        """Make them quick again."""
        for address in addresses:
            self.pods[address].delay, self.pods[address].dead = 0.0, False

    def last_put(self, addresses: Iterable[str], wanted: str) -> float | None:
        """When the last of these engines took the schedule of this hash; None while one has not."""
        pods = [self.pods[address] for address in addresses]
        if any(pod.hash != wanted for pod in pods):
            return None
        return max(pod.puts[-1] for pod in pods)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        _allow_files(2 * len(self.pods))
        server = web.Server(self._handle)
        listening = await self._loop.create_server(server, list(self.pods), PORT)
        self._started.set()
        await self._stop.wait()
        listening.close()
        await server.shutdown(0.1)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None, "a request comes by a connection"
        pod = self.pods[request.transport.get_extra_info("sockname")[0]]
        pod.requests, pod.asked = pod.requests + 1, time.monotonic()
        body = await request.read()
        if pod.dead:
            await self._stop.wait()
        if pod.delay:
            await asyncio.sleep(pod.delay)
        return _answer(pod, request, body)


def _allow_files(count: int) -> None:
    """Each address is a socket, and many of them have a connection: more files than the usual limit of 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = count + _OTHER_FILES
    if soft < least and (hard >= least or hard == resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))


def _answer(pod: Pod, request: web.BaseRequest, body: bytes) -> web.Response:
    refusal = None
    if (request.method, request.path) == ("PUT", SCHEDULE_PATH):
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            refusal = problem(401, "there is no token")
        elif (refusal := pod.engine.put(body)) is None:
            pod.puts.append(time.monotonic())
    elif (request.method, request.path) != ("GET", STATUS_PATH):
        return web.Response(status=404, text='{"detail": "Not Found"}', content_type=_JSON)
    if refusal is not None:
        return web.Response(status=refusal.status, body=_json(refusal), content_type=PROBLEM_CONTENT_TYPE)
    return web.Response(body=_json(pod.engine.status()), content_type=_JSON)


def _json(document: Wire) -> bytes:
    return document.model_dump_json(by_alias=True, exclude_none=True).encode()
