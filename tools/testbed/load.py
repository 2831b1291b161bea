"""Concurrent streaming clients in a thread of their own, each answer kept as token ids.

The clients run until they are told to stop and then let their last answers end, so that an aborted request is always
the engine's doing. `engine` builds the requests.
"""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp

from tools.testbed.engine import Tokens, completion_body


@dataclass(frozen=True)
class Answer:
    """One request: which prompt, the tokens streamed back, and the error when it did not end as asked."""

    url: str
    prompt: Tokens
    tokens: Tokens
    error: str | None
    seconds: float


class Load:
    """`streams` clients that send `prompts` round-robin to `urls` until the block ends; use as a context manager.

    `pause` seconds lie between two requests of one client. `answers` is complete after the block.
    """

    def __init__(
        self, urls: Sequence[str], prompts: Sequence[Tokens], streams: int, max_tokens: int, pause: float = 0.0
    ) -> None:
        self.answers: list[Answer] = []
        self._urls, self._prompts, self._streams = urls, prompts, streams
        self._max_tokens, self._pause = max_tokens, pause
        self._stop = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._fault is not None:
            raise RuntimeError("the clients themselves failed") from self._fault

    @property
    def failures(self) -> list[Answer]:
        """Requests that did not end as asked."""
        return [answer for answer in self.answers if answer.error]

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as fault:
            self._fault = fault

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            await asyncio.gather(*(self._client(session, i) for i in range(self._streams)))

    async def _client(self, session: aiohttp.ClientSession, index: int) -> None:
        url, turn = self._urls[index % len(self._urls)], index
        while not self._stop.is_set():
            self.answers.append(await self._ask(session, url, self._prompts[turn % len(self._prompts)]))
            turn += 1
            await asyncio.sleep(self._pause)

    async def _ask(self, session: aiohttp.ClientSession, url: str, prompt: Tokens) -> Answer:
        started, tokens = time.monotonic(), []
        error: str | None = None
        body = completion_body(prompt, self._max_tokens, stream=True)
        try:
            async with session.post(f"{url}/v1/completions", json=body) as response:
                if response.status != 200:
                    error = f"HTTP {response.status}: {(await response.text())[:300]}"
                else:
                    async for chunk in _token_ids(response):
                        tokens.extend(chunk)
        except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        if error is None and len(tokens) != self._max_tokens:
            error = f"{len(tokens)} tokens instead of {self._max_tokens}"
        return Answer(url, prompt, tuple(tokens), error, time.monotonic() - started)


async def _token_ids(response: aiohttp.ClientResponse) -> AsyncIterator[list[int]]:
    """Token ids of each server-sent event; ValueError on an error event or when the stream ends early."""
    async for line in response.content:
        data = line.decode().strip().removeprefix("data: ")
        if data == "[DONE]":
            return
        if data:
            event = json.loads(data)
            if "choices" not in event:
                raise ValueError(f"error event: {data[:300]}")
            for choice in event["choices"]:
                yield choice["token_ids"] or []
    raise ValueError("the stream ended without [DONE]")
