"""One streaming completion over HTTP: what is asked, and how many tokens have come. `load` runs many of them.

Plain http.client: no proxy, no redirect, no retry, and a socket that another thread can shut to end a request at once.
"""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.prompts import Prompt

_TIMEOUT: Final = 300.0
_BLOCK: Final = 65536


class RequestFailure(Failure):
    """A completion that did not end as asked. `status` is HTTP's, 0 where the connection failed."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status


@dataclass(frozen=True)
class Settings:
    """What all requests share. `limit` is the engine's max_model_len in tokens, where it is known."""

    model: str
    max_tokens: int
    temperature: float = 0.0
    api_key: str | None = None
    limit: int | None = None


def body_of(prompt: Prompt, settings: Settings, max_tokens: int | None = None) -> dict[str, Any]:
    """The request for a prompt; a prompt that is too long for the engine is cut at its beginning."""
    tokens = max_tokens or prompt.max_tokens or settings.max_tokens
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": tokens,
        "temperature": settings.temperature,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    if settings.limit is not None:
        body["truncate_prompt_tokens"] = max(1, settings.limit - tokens)
    if prompt.messages is not None:
        return body | {"messages": list(prompt.messages)}
    return body | {"prompt": prompt.text or ""}


class Connection:
    """A connection to one address (http or https, a path in front of /v1 is kept). Used by one thread, shut by any."""

    def __init__(self, address: str, api_key: str | None = None, timeout: float = _TIMEOUT) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Failure(f"{address!r} is no address", "Write it as http://HOST:PORT.")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.address = address

    def get(self, path: str) -> bytes:
        """The content at `path`; raises RequestFailure. A connection that the server has closed is opened anew."""
        try:
            return self._send("GET", path, None).read()
        except (OSError, http.client.HTTPException):
            self.close()
        try:
            return self._send("GET", path, None).read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._broken(error) from error

    def stream(self, body: dict[str, Any]) -> Iterator[int]:
        """Send a completion; yields how many tokens have come so far each time some came. Raises RequestFailure."""
        path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        try:
            response = self._send("POST", path, json.dumps(body).encode())
            yield from _counts(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise self._broken(error) from error

    def shut(self) -> None:
        """End what is under way, from another thread."""
        with suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it; the next request opens it anew."""
        self._connection.close()

    def _send(self, verb: str, path: str, content: bytes | None) -> http.client.HTTPResponse:
        self._connection.request(verb, self._prefix + path, content, self._headers)
        response = self._connection.getresponse()
        if response.status != 200:
            text = response.read().decode(errors="replace")
            raise refusal(response.status, text, self.address)
        return response

    def _broken(self, error: Exception) -> RequestFailure:
        reason = str(error) or type(error).__name__
        return RequestFailure(0, f"the connection to {self.address} broke: {reason}")


def refusal(status: int, text: str, address: str) -> RequestFailure:
    """An answer other than 200, in words."""
    message = _message(text) or f"HTTP {status}"
    hint = "Give the engine's key with --api-key, or in DSD_API_KEY." if status in (401, 403) else ""
    return RequestFailure(status, f"{address} refuses a completion ({status}): {message}", hint)


def _message(text: str) -> str:
    """vLLM's words in its error object, else the beginning of the text."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(text)["error"]["message"])[:500]
    return text.strip()[:300]


def _counts(response: http.client.HTTPResponse) -> Iterator[int]:
    """The counts of a stream of server-sent events; ValueError when it ends early or says that the engine failed."""
    rest = b""
    while block := response.read1(_BLOCK):
        *events, rest = (rest + block).split(b"\n\n")
        if events and (count := _latest(events)) is not None:
            yield count
        if events and events[-1].strip() == b"data: [DONE]":
            response.read()
            return
    raise ValueError("the stream ended early")


def _latest(events: list[bytes]) -> int | None:
    """The newest count among events; each carries the total so far, so the last one is enough."""
    for event in reversed(events):
        data = event.strip().removeprefix(b"data: ")
        if data and data != b"[DONE]":
            found = json.loads(data)
            if "error" in found:
                raise ValueError(f"the engine ended it: {found['error']}")
            usage = found.get("usage")
            return int(usage["completion_tokens"]) if usage else None
    return None
