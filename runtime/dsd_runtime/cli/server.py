"""Talks to one server: the two routes of the plugin, and plain words for everything that can be in the way."""

import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import httpx

from dsd_runtime.cli.errors import InputError, NoPluginError, RefusedError, UnreachableError
from dsd_runtime.protocol import SCHEDULE_PATH, STATUS_PATH, SchedulePut


@dataclass(frozen=True)
class Server:
    """Where the server is and how to trust it. `timeout` in seconds; the plugin itself waits 10 s for the engine."""

    url: str
    ca_file: Path | None = None
    insecure: bool = False
    unix_socket: Path | None = None
    timeout: float = 15
    base: httpx.URL = field(init=False)

    def __post_init__(self) -> None:
        """Check the address; raises an error of `errors`."""
        try:
            base = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise InputError(f"--url {self.url}: {error}") from error
        if base.scheme not in ("http", "https") or not base.host:
            raise InputError(f"--url {self.url}: write it like http://localhost:8000")
        object.__setattr__(self, "base", base)

    def status(self) -> dict[str, Any]:
        """The status document; raises an error of `errors`."""
        return self._answer(self._send("GET", STATUS_PATH))

    def put(self, body: SchedulePut, token: bytes) -> dict[str, Any]:
        """Set a schedule; answers with the status after it. Raises an error of `errors`."""
        headers = {b"Authorization": b"Bearer " + token, b"Content-Type": b"application/json"}
        content = body.model_dump_json(by_alias=True, exclude_none=True)
        return self._answer(self._send("PUT", SCHEDULE_PATH, content=content, headers=headers))

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            with self._client() as client:
                return client.request(method, self._address(path), **arguments)
        except httpx.TimeoutException as error:
            raise UnreachableError(f"{self.url} did not answer within {self.timeout:g} s") from error
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self.url} cannot be reached: {self._reason(error)}") from error
        except (UnicodeError, httpx.InvalidURL) as error:
            raise InputError(f"cannot be sent: {error}") from error

    def _address(self, path: str) -> httpx.URL:
        return self.base.copy_with(path=self.base.path.rstrip("/") + path, query=None, fragment=None)

    def _client(self) -> httpx.Client:
        # A proxy from the environment is for the way out, not for the machine itself.
        direct = self.unix_socket is not None or _is_here(self.base.host)
        transport = httpx.HTTPTransport(uds=str(self.unix_socket)) if self.unix_socket else None
        return httpx.Client(
            verify=self._trust(),
            timeout=self.timeout,
            trust_env=not direct,
            transport=transport,
            follow_redirects=False,
        )

    def _trust(self) -> ssl.SSLContext | bool:
        if self.base.scheme != "https":
            return True
        if self.insecure:
            return False
        try:
            return ssl.create_default_context(cafile=str(self.ca_file)) if self.ca_file else True
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"--ca-file {self.ca_file}: no certificates in it ({error})") from error

    def _reason(self, error: httpx.HTTPError) -> str:
        text = str(error) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return f"its certificate is not trusted ({text}). Give its authority with --ca-file, or --insecure"
        if isinstance(error, httpx.RemoteProtocolError) and self.base.scheme == "http":
            return f"{text}. If it was started with --ssl-certfile, its address begins with https://"
        if "SSL" in text:
            return f"{text}. If it speaks no TLS, its address begins with http://"
        where = f"the socket {self.unix_socket}" if self.unix_socket else "this address"
        return f"{text}. Is the server up, and is {where} right? It listens once the model is loaded"

    def _answer(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code in (404, 405):
            self._no_plugin()
        document = _object(response)
        if response.is_success and document is not None and "mode" in document:
            return document
        if document is not None and "detail" in document and "type" in document:
            error = UnreachableError if response.status_code == 503 else RefusedError
            raise error(_refusal(response.status_code, document))
        raise NoPluginError(
            f"{self.url} answers {response.status_code} and no status of this plugin; is this its address?",
        )

    def _no_plugin(self) -> NoReturn:
        version = _object(self._send("GET", "/version"))
        if version is not None and "version" in version:
            raise NoPluginError(
                f"the server at {self.url} is vLLM {version['version']} without the DSD plugin: its schedule cannot be "
                "seen or changed. Start it with dsd-serve instead of vllm serve",
            )
        hint = " (leave out the /v1 at its end)" if self.base.path.rstrip("/").endswith("/v1") else ""
        raise NoPluginError(
            f"there is no DSD plugin at {self.url}: is the address right{hint}, with the server's --root-path if "
            "there is one?",
        )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        data = response.json()
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _refusal(status: int, document: Mapping[str, Any]) -> str:
    hints = {
        401: " Give the token with --token-file.",
        403: "",
        409: " Repeat the command, or give a higher --revision.",
        503: " Try again in a moment.",
    }
    return f"refused ({status}): {str(document['detail']).rstrip('.')}.{hints.get(status, '')}"
