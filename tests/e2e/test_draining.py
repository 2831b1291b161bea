"""Two replicas behind their Service are replaced while clients stream through it: no request fails.

Clients of both kinds: one opens a connection for each request, as command lines do, the other keeps connections, as
SDKs and proxies do. Nobody tries anything twice.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest

from dsd_runtime.schedule import from_triples
from tools.testbed import manifests
from tools.testbed.engine import completion_body, pod_url
from tools.testbed.handle import START_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.site import site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET, prompts

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NAMESPACE: Final = "dsd-draining"
NAME: Final = "pair"
SHORT: Final = 32
LONG: Final = 400
"""Tokens of a request; a long one takes seconds, so that some are open whenever a pod is told to end."""


@dataclass
class Clients:
    """Threads that stream through one address until they are told to stop, and what they met."""

    url: str
    stop: threading.Event = field(default_factory=threading.Event)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    longest: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Two of each kind: with short requests and with long ones."""
        kinds = [(kept, tokens) for kept in (False, True) for tokens in (SHORT, LONG)]
        threads = [threading.Thread(target=self._run, args=kind) for kind in kinds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(120)

    def _run(self, kept: bool, tokens: int) -> None:
        name = f"{'kept' if kept else 'fresh'} connections, {tokens} tokens"
        client = self._client()
        while not self.stop.is_set():
            begin = time.monotonic()
            try:
                self._stream(client, tokens)
            except (httpx.HTTPError, AssertionError, ValueError) as error:
                self.failures.append(f"{name}: {type(error).__name__}: {error}")
            else:
                self.done[name] += 1
                self.longest = max(self.longest, time.monotonic() - begin)
            if not kept:
                client.close()
                client = self._client()
        client.close()

    def _client(self) -> httpx.Client:
        return httpx.Client(timeout=120, trust_env=False, transport=httpx.HTTPTransport(retries=0))

    def _stream(self, client: httpx.Client, tokens: int) -> None:
        body = completion_body(prompts(1)[0], tokens, stream=True)
        with client.stream("POST", f"{self.url}/v1/completions", json=body) as response:
            assert response.status_code == 200, f"{response.status_code}: {response.read()[:200]!r}"
            lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
        assert lines[-1] == "[DONE]", lines[-1]
        events: list[dict[str, Any]] = [json.loads(line) for line in lines[:-1]]
        got = sum(len(event["choices"][0].get("token_ids") or ()) for event in events)
        assert got == tokens, f"{got} of {tokens} tokens, {events[-1]['choices'][0].get('finish_reason')}"


@pytest.fixture
def pair(installation: Installation) -> Iterator[Handle]:
    """Two replicas of a tiny engine, Ready, with the grace that the operator gives."""
    with site(installation.kube, NAMESPACE):
        schedule = from_triples([(1, 16, 2)])
        manifest = manifests.dsd_deployment(NAMESPACE, NAME, TARGET, DRAFTERS["ngram"], schedule, replicas=2)
        del manifest["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"]
        installation.kube.apply(manifest)
        handle = Handle(installation.kube, NAMESPACE, NAME)
        handle.wait_ready()
        yield handle


def address(handle: Handle) -> str:
    spec = handle.child("Service")["spec"]
    return pod_url(spec["clusterIP"], spec["ports"][0]["port"])


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_no_request_fails_while_both_replicas_are_replaced(pair: Handle) -> None:
    before = uids(pair.pods())
    clients = Clients(address(pair))
    with clients.running():
        wait_for("requests of every kind", lambda: len(clients.done), lambda kinds: kinds == 4, 120, 0.5)
        pair.patch({"rollout": {"restartedAt": "2026-01-01T00:00:00Z"}})
        wait_for(
            "two new pods, Ready, and the old ones gone",
            lambda: pair.children("Pod"),
            lambda pods: len(pods) == 2 and not uids(pods) & before,
            2 * START_TIMEOUT,
            0.5,
        )
        pair.wait_ready()
        so_far = dict(clients.done)
        wait_for("more of each", lambda: clients.done, lambda done: all(done[k] > n for k, n in so_far.items()), 120)
    print(f"{sum(clients.done.values())} requests, the longest {clients.longest:.1f} s: {dict(clients.done)}")
    assert clients.failures == []
