"""The Kubernetes client: plain dicts in and out, `ApiError` when something fails, nothing cached.

The only module that knows the library (`kubernetes.aio`), so that another one could take its place.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from kubernetes.aio import client as kube_client
from kubernetes.aio.client import rest

from dsd_operator.cluster import resources
from dsd_operator.cluster.connection import NoConfiguration, load_configuration
from dsd_operator.cluster.errors import Gone, Retry, from_response, unreachable
from dsd_operator.cluster.pause import Pause
from dsd_operator.cluster.resources import Resource

FIELD_MANAGER: Final = "dsd-operator"
STATUS_FIELD_MANAGER: Final = "dsd-operator-status"

_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_ACCEPT: Final = "application/json, application/jwk-set+json"
_TIMEOUT_SECONDS: Final = 15.0
_PAGE: Final = 500
_SMALL_PAGE: Final = 100
_UNAUTHORIZED: Final = 401
_NO_ANSWER: Final = (OSError, TimeoutError, rest.aiohttp.ClientError)

OnRequest = Callable[[str, int], None]
"""Told of every request: the HTTP verb and the answer's status, 0 for none."""

Names = list[tuple[str, str]]
Manifest = Mapping[str, Any]
Query = Mapping[str, str | int]

_log = logging.getLogger(__name__)


class Client:
    """One connection pool to the API server. `open` before use, `close` after."""

    def __init__(self, on_request: OnRequest = lambda _verb, _code: None) -> None:
        self._on_request = on_request
        self._api: Any = None
        self._login = asyncio.Lock()
        self._pause = Pause(time.monotonic)

    async def open(self) -> None:
        """Read address and credentials; raises NoConfiguration."""
        self._api = _pool(await load_configuration())

    async def close(self) -> None:
        """Close all connections."""
        if self._api is not None:
            await self._api.close()

    async def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any] | None:
        """The object, None if there is none."""
        try:
            return await self._json("GET", resource.path(namespace, name))
        except Gone:
            return None

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind in a namespace (None: in all of them) that carry the labels of `selector`."""
        pages = self._pages(resource, namespace, {"limit": _PAGE} | ({"labelSelector": selector} if selector else {}))
        return [item async for page in pages for item in page]

    async def names(self, resource: Resource, namespace: str | None) -> Names:
        """Namespace and name of all objects of a kind. Never are all of the objects themselves in memory."""
        pages = self._pages(resource, namespace, {"limit": _SMALL_PAGE})
        return [(str(i["metadata"]["namespace"]), str(i["metadata"]["name"])) async for page in pages for i in page]

    async def _pages(
        self, resource: Resource, namespace: str | None, query: Mapping[str, str | int]
    ) -> AsyncIterator[Sequence[dict[str, Any]]]:
        token = ""
        while True:
            more = {"continue": token} if token else {}
            page = await self._json("GET", resource.path(namespace), {**query, **more})
            yield page.get("items") or ()
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    async def first(self, resource: Resource, namespace: str) -> None:
        """List one object at most: ApiError says why nothing of the kind can be listed there."""
        await self._json("GET", resource.path(namespace), {"limit": 1})

    async def apply(self, manifest: Manifest) -> dict[str, Any]:
        """Server-side apply with force; returns the object as it is now. Ownership is the caller's to check."""
        meta = manifest["metadata"]
        path = resources.resource_of(manifest).path(meta["namespace"], meta["name"])
        return await self._json("PATCH", path, {"fieldManager": FIELD_MANAGER, "force": "true"}, manifest, _APPLY)

    async def apply_status(self, manifest: Manifest) -> dict[str, Any]:
        """Server-side apply on /status, by a field manager of its own."""
        meta = manifest["metadata"]
        path = resources.resource_of(manifest).path(meta["namespace"], meta["name"], "status")
        query = {"fieldManager": STATUS_FIELD_MANAGER, "force": "true"}
        return await self._json("PATCH", path, query, manifest, _APPLY)

    async def scale(self, thing: Manifest, replicas: int) -> None:
        """Set `spec.replicas` of this very object in this very version; Conflict if it has changed.

        For a workload that is on its way out: applying it would need its whole spec, which nobody asks for any more.
        """
        meta = thing["metadata"]
        path = resources.resource_of(thing).path(meta["namespace"], meta["name"])
        seen = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {"metadata": seen, "spec": {"replicas": replicas}}
        await self._json("PATCH", path, {"fieldManager": FIELD_MANAGER}, body, _MERGE)

    async def delete(self, thing: Manifest) -> None:
        """Delete this very object in this very version; Conflict if it has changed, nothing happens if it is gone."""
        meta = thing["metadata"]
        seen = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": seen}
        path = resources.resource_of(thing).path(meta["namespace"], meta["name"])
        with contextlib.suppress(Gone):
            await self._json("DELETE", path, {}, body)

    async def create(self, resource: Resource, namespace: str, body: Manifest) -> dict[str, Any]:
        """Create an object under a generated name: for Events. Everything else is applied."""
        return await self._json("POST", resource.path(namespace), {}, body)

    async def request_token(self, namespace: str, service_account: str, audience: str, seconds: int) -> dict[str, Any]:
        """A token for a service account, for one audience; `spec.expirationSeconds` says what was granted."""
        path = resources.SERVICE_ACCOUNT.path(namespace, service_account, "token")
        spec = {"audiences": [audience], "expirationSeconds": seconds}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return await self._json("POST", path, {}, body)

    async def issuer(self) -> str:
        """The issuer that signs service-account tokens."""
        return str((await self._json("GET", "/.well-known/openid-configuration"))["issuer"])

    async def signing_keys(self) -> dict[str, Any]:
        """The keys (JWKS) that service-account tokens are checked against."""
        return await self._json("GET", "/openid/v1/jwks")

    async def serves(self, resource: Resource) -> bool:
        """Whether the API server knows the kind."""
        try:
            found = await self._json("GET", f"/apis/{resource.api_version}")
        except Gone:
            return False
        return any(r.get("name") == resource.plural for r in found.get("resources") or ())

    async def _json(
        self, verb: str, path: str, query: Query | None = None, body: Manifest | None = None, content_type: str = _JSON
    ) -> dict[str, Any]:
        address = f"{path}?{urlencode(query)}" if query else path
        self._pause.check()
        pool = self._api
        response, content = await self._send(pool, verb, address, body, content_type)
        if response.status == _UNAUTHORIZED and await self._login_anew(pool):
            response, content = await self._send(self._api, verb, address, body, content_type)
        if not response.status < 300:
            error = from_response(response.status, content, response.getheader("Retry-After"))
            self._pause.note(error)
            raise error
        return _decoded(content, f"{verb} {path}", response.status)

    async def _send(
        self, pool: Any, verb: str, address: str, body: Manifest | None, content_type: str
    ) -> tuple[Any, bytes]:
        headers = {"Accept": _ACCEPT, "Content-Type": content_type}
        try:
            request = await pool.param_serialize(
                verb, address, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = await pool.call_api(*request, _request_timeout=_TIMEOUT_SECONDS)
            content = await response.read()
        except _NO_ANSWER as error:
            self._on_request(verb, 0)
            raise unreachable(error) from error
        self._on_request(verb, response.status)
        return response, content

    async def _login_anew(self, refused: Any) -> bool:
        """Replace the pool whose credentials were refused, once for all requests that shared it."""
        async with self._login:
            if self._api is not refused:
                return True
            _log.info("The API server refused the credentials; reading them anew")
            try:
                configuration = await load_configuration()
            except NoConfiguration as error:
                _log.warning("No new credentials: %s", error)
                return False
            self._api = _pool(configuration)
            # Requests in flight on the old pool end by themselves; closing it under them would fail them.
            asyncio.get_running_loop().call_later(2 * _TIMEOUT_SECONDS, _close_soon, refused)
            return True


def _decoded(content: bytes, request: str, status: int) -> dict[str, Any]:
    """The JSON object of an answer; Retry if it is none, for then something stands in the API server's place."""
    try:
        decoded = json.loads(content)
    except ValueError:
        decoded = None
    if not isinstance(decoded, dict):
        raise Retry(status, f"{request}: the answer is no JSON object; is it really the API server that answers?")
    return decoded


def _pool(configuration: Any) -> Any:
    api = kube_client.ApiClient(configuration)
    api.user_agent = FIELD_MANAGER
    return api


_closing: set[asyncio.Task[None]] = set()


def _close_soon(pool: Any) -> None:
    task = asyncio.ensure_future(pool.close())
    _closing.add(task)  # the loop holds tasks weakly
    task.add_done_callback(_closing.discard)
