"""A reverse proxy between the operator and the real API server that does, request by request, what a test asks for.

It runs in a thread of its own. Without rules every request passes unchanged, watches line by line. The operator's own
token passes too, so its rights stay those of the chart.
"""

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from tests.faults.calls import Call
from tests.faults.snapshot import Snapshot
from tests.faults.streams import Event, Streams

_PASSED_ON: Final = ("Authorization", "Accept", "Content-Type", "User-Agent")
_PASSED_BACK: Final = ("Content-Type", "Retry-After")
_START_SECONDS: Final = 10.0

Forward = Callable[[], Awaitable[web.Response]]
Fault = Callable[[Call, web.Request, Forward], Awaitable[web.StreamResponse]]
"""What happens to a request instead of, before or after it is passed on."""


@dataclass
class Rule:
    """A fault for the requests that `when` picks: the next `times` of them, or all (None) until it is lifted."""

    when: Callable[[Call], bool]
    fault: Fault
    times: int | None = None
    hit: list[Call] = field(default_factory=list)

    def takes(self, call: Call) -> bool:
        """Whether the request is one of its own; counts it."""
        if (self.times is not None and len(self.hit) >= self.times) or not self.when(call):
            return False
        self.hit.append(call)
        return True


class Proxy:
    """Use as a context manager; `url` is its address."""

    def __init__(self, server: str, credentials: ssl.SSLContext) -> None:
        """`credentials` are the administrator's; they are used only for what the operator may not ask itself."""
        self.calls: list[Call] = []
        self.streams = Streams()
        self._snapshot: Snapshot | None = None
        self._current = asyncio.Event()
        self._server = server
        self._credentials = credentials
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._ready, self._done = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self.url = ""

    def __enter__(self) -> "Proxy":
        self._thread.start()
        assert self._ready.wait(_START_SECONDS), "the proxy has not started"
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
        self.catch_up()
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()
        self._loop.close()

    def on(self, when: Callable[[Call], bool], fault: Fault, times: int | None = None) -> Rule:
        """Add a rule; the newest that takes a request decides."""
        rule = Rule(when, fault, times)
        self._rules.insert(0, rule)
        return rule

    def lift(self) -> None:
        """Remove all rules. Requests that hang go on hanging, as those of a dead connection do."""
        self._rules = []

    def writes(self) -> list[Call]:
        """The writes that reached the API server, in order."""
        return [call for call in self.calls if call.write and call.reached]

    def fall_behind(self, version: str) -> None:
        """From now on what kopf lists is as of this resourceVersion, and new watches bring nothing.

        The passes' own reads name no resourceVersion, so the API server must answer them as of now.
        """
        self._snapshot = Snapshot(version)
        self._loop.call_soon_threadsafe(self._current.clear)

    def catch_up(self) -> None:
        """Reads are answered as of now, and watches go on where they were."""
        self._snapshot = None
        self._loop.call_soon_threadsafe(self._current.set)

    def cut_watches(self) -> int:
        """End all watches as an API server does that goes away; returns how many there were."""
        return asyncio.run_coroutine_threadsafe(self.streams.cut(), self._loop).result()

    def say(self, event: Event, plural: str) -> int:
        """Put an event into the open watches on a kind; returns how many there are."""
        return asyncio.run_coroutine_threadsafe(self.streams.say(event, plural), self._loop).result()

    async def _serve(self) -> None:
        # A handler ends with its client: a request that hangs is not carried out after its client was killed.
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._current.set()
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        connector = TCPConnector(ssl=self._credentials, limit=0)
        async with ClientSession(connector=connector, timeout=ClientTimeout(), auto_decompress=False) as session:
            self._session = session
            self._ready.set()
            await self._done.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body, agent = await request.read(), request.headers.get("User-Agent", "")
        call = Call(time.monotonic(), request.method, request.path, dict(request.query), body, agent)
        self.calls.append(call)
        for rule in self._rules:
            if rule.takes(call):
                answer = await rule.fault(call, request, lambda: self._forward(call, request))
                call.status = answer.status
                return answer
        if call.watch:
            return await self._watch(call, request)
        answer = await self._forward(call, request)
        call.status = answer.status
        return answer

    async def _forward(self, call: Call, request: web.Request) -> web.Response:
        snapshot = self._snapshot
        if snapshot is not None and call.read and call.framework:
            async with self._session.get(self._url(snapshot.address(call)), headers=_headers(request)) as response:
                return web.Response(status=response.status, body=await response.read(), content_type="application/json")
        call.reached = True
        async with self._session.request(
            request.method,
            self._url(request.raw_path),
            headers=_headers(request),
            data=call.body or None,
            skip_auto_headers=("Content-Type",),
        ) as response:
            body = await response.read()
            if call.write and response.status < 300:
                call.answer = await response.json()
            kept = {name: value for name, value in response.headers.items() if name in _PASSED_BACK}
            return web.Response(status=response.status, headers=kept, body=body)

    async def _watch(self, call: Call, request: web.Request) -> web.StreamResponse:
        await self._current.wait()  # a server that is behind has nothing to tell
        call.reached = True
        async with self._session.get(self._url(request.raw_path), headers=_headers(request)) as source:
            call.status = source.status
            if source.status != 200:
                return web.Response(status=source.status, body=await source.read(), content_type="application/json")
            answer = web.StreamResponse(headers={"Content-Type": "application/json"})
            await answer.prepare(request)
            await self.streams.relay(call, source.content, answer, request)
            return answer

    def _url(self, path: str) -> URL:
        return URL(self._server + path, encoded=True)


def _headers(request: web.Request) -> dict[str, Any]:
    return {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
