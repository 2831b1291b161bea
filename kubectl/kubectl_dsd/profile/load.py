"""A closed loop of streaming clients: exactly so many requests are in flight at every address, all the time.

One thread per client. A client sends the next prompt as soon as its answer has ended. The first requests are of
different lengths, so that the requests do not all end in the same step for ever.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.prompts import Prompt
from kubectl_dsd.profile.streams import Connection, RequestFailure, Settings, body_of

START_SECONDS: Final = 180.0
"""Longest wait until every client has got its first token."""

_POLL: Final = 0.02


class Load:
    """`concurrency` clients at each of `addresses` while the block runs; `prompts` in turn, from number `first` on."""

    def __init__(
        self, addresses: Sequence[str], concurrency: int, prompts: Sequence[Prompt], settings: Settings, first: int = 0
    ) -> None:
        self._prompts, self._settings = prompts, settings
        self._numbers = itertools.count(first)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._tokens = 0
        self._begun = 0
        self._failure: RequestFailure | None = None
        self._connections = [Connection(a, settings.api_key) for a in addresses for _ in range(concurrency)]
        self._threads = [
            threading.Thread(target=self._client, args=(i, connection), daemon=True)
            for i, connection in enumerate(self._connections)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread, connection in zip(self._threads, self._connections, strict=True):
            # A client may have been between two requests when it was shut: until it ends.
            while thread.ident is not None and thread.is_alive():
                connection.shut()
                thread.join(_POLL)
            connection.close()

    @property
    def tokens(self) -> int:
        """Tokens that have come so far, over all clients."""
        with self._lock:
            return self._tokens

    def check(self) -> None:
        """Raise the first failure of a client, if there was one."""
        if self._failure is not None:
            raise self._failure

    def wait_started(self, seconds: float = START_SECONDS) -> None:
        """Wait until every client has got a token; raises Failure."""
        deadline = time.monotonic() + seconds
        while self._begun < len(self._threads):
            self.check()
            if time.monotonic() > deadline:
                raise Failure(
                    f"after {seconds:.0f} s only {self._begun} of {len(self._threads)} requests have got a token",
                    "The engine is overloaded, or has no KV cache for so many; try a lower --concurrency.",
                )
            time.sleep(_POLL)

    def wait(self, seconds: float) -> None:
        """Let it run; raises the first failure of a client."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.1))
        self.check()

    def _client(self, index: int, connection: Connection) -> None:
        try:
            self._ask(connection, self._first_length(index))
            while not self._stopping.is_set():
                self._ask(connection, None)
        except RequestFailure as failure:
            if not self._stopping.is_set():
                self._failure = self._failure or failure

    def _first_length(self, index: int) -> int:
        """Of the longest length: the first client a small part, the last all of it."""
        return max(1, -(-self._settings.max_tokens * (index + 1) // len(self._threads)))

    def _ask(self, connection: Connection, max_tokens: int | None) -> None:
        prompt = self._prompts[next(self._numbers) % len(self._prompts)]
        so_far = 0
        for count in connection.stream(body_of(prompt, self._settings, max_tokens)):
            with self._lock:
                self._tokens += count - so_far
                self._begun += max_tokens is not None and so_far == 0 and count > 0
            so_far = count
        with self._lock:
            # An answer without a token is an answer; nobody shall wait for its first one.
            self._begun += max_tokens is not None and so_far == 0
