"""Waiting with a deadline: polls until a condition holds, and says what it last saw when it never does."""

import json
import time
from collections.abc import Callable
from typing import Final, TypeVar

import httpx
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

T = TypeVar("T")

TRANSIENT: Final = (httpx.HTTPError, ApiException, HTTPError, OSError)
"""Errors of a peer that is starting, stopping or out of reach: seen again until the deadline, then reported."""

_MAX_STATE: Final = 3000


class WaitTimeoutError(AssertionError):
    """A condition did not come true in time; the message names it and the last state seen."""


def wait_for(what: str, look: Callable[[], T], until: Callable[[T], bool], timeout: float, interval: float = 0.2) -> T:
    """Call `look` until `until` accepts its result, at most `timeout` seconds; return that result.

    A transient network or API error counts as a state that is not accepted. Raises WaitTimeoutError.
    """
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            state = look()
        except TRANSIENT as error:
            last = f"{type(error).__name__}: {error}"
        else:
            if until(state):
                return state
            last = state
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(f"waited {timeout:g} s for {what}; last seen: {_shorten(last)}")
        time.sleep(interval)


def _shorten(state: object) -> str:
    text = json.dumps(state, indent=1, default=str) if isinstance(state, dict | list | tuple) else str(state)
    return text if len(text) <= _MAX_STATE else f"{text[:_MAX_STATE]} …"
