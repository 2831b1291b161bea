"""Plain HTTP requests to programs on this machine, never through a proxy."""

import http.client
import urllib.error
import urllib.request
from email.message import Message

_TIMEOUT_SECONDS = 3
_FAILURES = (OSError, urllib.error.URLError, http.client.HTTPException)


def request(url: str, method: str = "GET", accept: str = "*/*") -> Message | None:
    """The headers of a successful answer; None if there was none."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        wanted = urllib.request.Request(url, method=method, headers={"Accept": accept})
        with opener.open(wanted, timeout=_TIMEOUT_SECONDS) as response:
            headers: Message = response.headers
            return headers
    except _FAILURES:
        return None


def answers(url: str, accept: str = "*/*") -> bool:
    """Whether the URL answers with success."""
    return request(url, accept=accept) is not None
