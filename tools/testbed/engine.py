"""One engine over HTTP: completions as token ids, the plugin's status, its metrics, a schedule PUT.

Prompts are token ids too, so that nothing depends on a tokenizer. `load` sends the same request many times at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from dsd_runtime.protocol import SCHEDULE_PATH, STATUS_PATH, EngineStatus

ENGINE_PORT: Final = 8000
MODEL_NAME: Final = "tiny"
"""The served model name of every engine of the test bed."""

Tokens = tuple[int, ...]


def pod_url(address: str, port: int = ENGINE_PORT) -> str:
    """Base URL for a pod's or Service's address; IPv6 gets its brackets."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}"


def completion_body(prompt: Sequence[int], max_tokens: int, *, stream: bool = False) -> dict[str, Any]:
    """A greedy completion of exactly `max_tokens` tokens that comes back as token ids."""
    return {
        "model": MODEL_NAME,
        "prompt": list(prompt),
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
        "stream": stream,
    }


@dataclass(frozen=True)
class Engine:
    """An engine at `url`. Every call opens its own connection: pods come and go under one address."""

    url: str
    timeout: float = 60.0

    def _get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=self.timeout, trust_env=False).raise_for_status()

    def healthy(self) -> bool:
        """Whether the engine serves."""
        return httpx.get(f"{self.url}/health", timeout=self.timeout, trust_env=False).is_success

    def status(self) -> EngineStatus:
        """What the plugin reports."""
        return EngineStatus.model_validate_json(self._get(STATUS_PATH).content)

    def metrics(self) -> str:
        """The Prometheus text."""
        return self._get("/metrics").text

    def complete(self, prompt: Sequence[int], max_tokens: int) -> Tokens:
        """The greedy continuation as token ids."""
        body = completion_body(prompt, max_tokens)
        answer = httpx.post(f"{self.url}/v1/completions", json=body, timeout=self.timeout, trust_env=False)
        return tuple(answer.raise_for_status().json()["choices"][0]["token_ids"])

    def put_schedule(self, body: Mapping[str, Any], token: str | None) -> httpx.Response:
        """PUT a schedule with a bearer token, or without one; the raw answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = self.url + SCHEDULE_PATH
        return httpx.put(url, json=dict(body), headers=headers, timeout=self.timeout, trust_env=False)


def in_use(status: EngineStatus) -> set[str]:
    """Hashes of the schedules that the engine cores use now; one element when they agree."""
    return {core.schedule.hash for core in status.engines} | ({status.schedule.hash} if status.schedule else set())
