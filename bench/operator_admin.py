"""The administrator of the operator's benchmark: many requests at once, and a watch that shows how each stands.

A watch and not a poll: a list of a thousand resources every second would be a load of its own.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
from kubernetes import config

from dsd_operator.api.constants import API_VERSION, GROUP, KIND, PLURAL, VERSION

CONCURRENCY: Final = 16
"""Requests in flight."""

_TRIES: Final = 10
_TOO_MANY: Final = 429
_LINE_BYTES: Final = 1024 * 1024

Json = dict[str, Any]
Name = tuple[str, str]
"""Namespace and name of a DSDDeployment."""


@dataclass(frozen=True)
class State:
    """How a resource stood when the watch showed it."""

    ready: bool
    applied: int
    total: int
    hash: str
    current: bool
    """Whether the status is about this generation."""


class Admin:
    """An asynchronous context manager. `states` follows the watch."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = config.new_client_from_config(str(kubeconfig)).configuration
        self._server = str(configuration.host)
        self._tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        self._tls.load_cert_chain(configuration.cert_file, configuration.key_file)
        self.states: dict[Name, State] = {}
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=CONCURRENCY + 4)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=_LINE_BYTES)
        listed = await self.request("GET", _path())
        self._watching = asyncio.create_task(self._watch(listed["metadata"]["resourceVersion"]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._session.close()

    async def request(self, verb: str, path: str, body: Json | None = None, content_type: str = "") -> Json:
        """One request; RuntimeError with the API server's words if it is refused."""
        headers = {"Content-Type": content_type or "application/json"}
        data = json.dumps(body) if body is not None else None
        for _ in range(_TRIES):
            async with self._session.request(verb, self._server + path, data=data, headers=headers) as answer:
                text = await answer.text()
            if answer.status < 300:
                return dict(json.loads(text))
            if answer.status != _TOO_MANY:
                break
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
        raise RuntimeError(f"{verb} {path}: {answer.status} {text}")

    async def create(self, manifests: Iterable[Json]) -> None:
        """Create many DSDDeployments."""
        await _some_at_once(self.request("POST", _path(m["metadata"]["namespace"]), m) for m in manifests)

    async def change(self, name: Name, spec: Json) -> float:
        """Merge into a spec; when the API server had answered (`time.monotonic`)."""
        await self.request("PATCH", _path(*name), {"spec": spec}, "application/merge-patch+json")
        return time.monotonic()

    async def change_all(self, names: Iterable[Name], spec: Json) -> dict[Name, float]:
        """The same for many, as fast as they can be sent."""
        wanted = list(names)
        answered = await _some_at_once(self.change(name, spec) for name in wanted)
        return dict(zip(wanted, answered, strict=True))

    async def until(self, what: str, reached: Callable[[Mapping[Name, State]], bool], seconds: float) -> float:
        """Wait for the watch to show it; when it did. TimeoutError says what was waited for."""
        try:
            async with asyncio.timeout(seconds):
                while not reached(self.states):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"{what} after {seconds:g} s") from None
        return time.monotonic()

    async def _watch(self, version: str) -> None:
        path = f"{self._server}{_path()}?watch=1&resourceVersion={version}"
        async with self._session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as stream:
            async for line in stream.content:
                event = json.loads(line)
                meta = event["object"]["metadata"]
                self.states[meta["namespace"], meta["name"]] = _state(event["object"])
                self._changed.set()
        raise RuntimeError("the watch ended")


def manifest(name: Name, spec: Json) -> Json:
    """A DSDDeployment."""
    meta = {"namespace": name[0], "name": name[1]}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def _path(namespace: str = "", name: str = "") -> str:
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{place}/{PLURAL}" + (f"/{name}" if name else "")


def _state(body: Json) -> State:
    status = body.get("status") or {}
    schedule = status.get("schedule") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    current = schedule.get("observedGeneration") == body["metadata"]["generation"]
    counts = schedule.get("podsApplied", 0), schedule.get("podsTotal", 0)
    return State(ready, *counts, schedule.get("hash", ""), current)


async def _some_at_once(work: Iterable[Any]) -> list[Any]:
    limit = asyncio.Semaphore(CONCURRENCY)

    async def one(coroutine: Any) -> Any:
        async with limit:
            return await coroutine

    return await asyncio.gather(*(one(coroutine) for coroutine in work))
