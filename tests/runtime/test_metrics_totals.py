"""Sums over K and concurrency against vLLM's own counters, on a real server under everything that requests can do."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.runtime.conftest import Engine, wire
from tests.runtime.examples import OWNER
from tests.runtime.server import API_KEY, wait_until

pytestmark = pytest.mark.engine

PROMPT = "the cat sat on the mat and the dog sat on the cat and the mat sat on the dog"
HEADERS = {"Authorization": f"Bearer {API_KEY}"}
PAIRS = {
    "dsd_draft_tokens_total": "vllm:spec_decode_num_draft_tokens_total",
    "dsd_accepted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total",
    "dsd_emitted_tokens_total": "vllm:generation_tokens_total",
}
MAXIMUM = 4
LEFT_TOKENS = 200
"""What a request asks for whose client leaves, or that a stop string ends."""


class Totals:
    """What both sides counted since it was made."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        metrics = self._engine.server.metrics()

        def total(name: str, **labels: str) -> float:
            found = metrics.get(name, {}).items()
            return sum(value for key, value in found if labels.items() <= dict(key).items())

        sums = {name: total(name) for pair in PAIRS.items() for name in pair}
        sums["vllm:drafts"] = total("vllm:spec_decode_num_drafts_total")
        for i in range(MAXIMUM):
            for name in ("dsd_draft_tokens_per_pos_total", "dsd_accepted_tokens_per_pos_total"):
                sums[f"{name}{i}"] = total(name, position=str(i))
            sums[f"vllm:accepted{i}"] = total("vllm:spec_decode_num_accepted_tokens_per_pos_total", position=str(i))
        return sums

    def gains(self) -> dict[str, float]:
        """By series."""
        return {name: value - self._before[name] for name, value in self._read().items()}

    def spec_decode_differences(self) -> dict[str, float]:
        """Ours less vLLM's, where they are not equal; the tokens handed out are left to the caller."""
        now = self.gains()
        ours = {ours: now[ours] - now[vllm] for ours, vllm in PAIRS.items() if "emitted" not in ours}
        for i in range(MAXIMUM):
            ours[f"accepted {i}"] = now[f"dsd_accepted_tokens_per_pos_total{i}"] - now[f"vllm:accepted{i}"]
        ours["drafts"] = now["dsd_draft_tokens_per_pos_total0"] - now["vllm:drafts"]
        return {name: value for name, value in ours.items() if value}

    def unseen(self) -> float:
        """Tokens that left the engine core and that vLLM's front end did not count."""
        now = self.gains()
        return now["dsd_emitted_tokens_total"] - now["vllm:generation_tokens_total"]


def post(engine: Engine, **more: Any) -> dict[str, Any]:
    """A completion."""
    body = {"model": "tiny", "prompt": PROMPT, "max_tokens": 40, "temperature": 0, **more}
    answer = engine.server.client.post("/v1/completions", json=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def leave(engine: Engine, chunks: int) -> None:
    """A stream whose client goes away."""
    body = {"model": "tiny", "prompt": PROMPT, "max_tokens": LEFT_TOKENS, "ignore_eos": True, "stream": True}
    with engine.server.client.stream("POST", "/v1/completions", json=body, headers=HEADERS) as stream:
        for _ in zip(range(chunks), stream.iter_lines(), strict=False):
            pass


def orderly(engine: Engine) -> list[Callable[[], Any]]:
    """Requests that go to their end in the engine core."""
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    return [
        *(lambda n=n: post(engine, n=n, temperature=0.8, seed=n) for n in (2, 3)),
        lambda: post(engine, structured_outputs={"regex": "(ab){4,12}"}),
        lambda: post(engine, structured_outputs={"json": schema}),
        lambda: post(engine, logprobs=2, echo=True, ignore_eos=True),
        *(lambda k=k: post(engine, max_tokens=k, ignore_eos=True) for k in (1, 2, 7, 33)),
        lambda: post(engine, stop_token_ids=list(range(20, 120))),
        lambda: post(engine, prompt=[PROMPT * 4, PROMPT], max_tokens=20),
    ]  # fmt: skip


def serve(engine: Engine, requests: list[Callable[[], Any]]) -> None:
    """All of them at once, with another schedule all the time."""
    chance = random.Random(3)
    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(one) for one in requests]
        while not all(one.done() for one in running):
            edge = chance.randint(1, 7)
            table = wire([(1, edge, chance.randint(0, MAXIMUM)), (edge + 1, 64, chance.randint(0, MAXIMUM))])
            answer = engine.put({"revision": {"owner": OWNER, "number": engine.next_number()}, "ranges": table})
            # 503: too busy to answer in time, as on a loaded machine while it compiles the first grammar.
            assert answer.status_code in (200, 503), answer.text
        for one in running:
            one.result()


def idle(engine: Engine) -> bool:
    """Whether nothing runs or waits any more."""
    return engine.server.total("vllm:num_requests_running") + engine.server.total("vllm:num_requests_waiting") == 0


def test_totals_are_vllms_to_the_token(engine: Engine) -> None:
    """n > 1, structured output, stop tokens, logprobs, several prompts, limits of any length, K swapped throughout."""
    engine.swap([(1, 64, MAXIMUM)])
    totals = Totals(engine)
    serve(engine, orderly(engine) * 2)
    # The front end counts a moment after the engine core.
    wait_until("equal totals", lambda: not totals.spec_decode_differences() and totals.unseen() == 0)
    gains = totals.gains()
    assert all(gains[name] > 0 for name in PAIRS)
    assert gains["dsd_draft_tokens_total"] == sum(gains[f"dsd_draft_tokens_per_pos_total{i}"] for i in range(MAXIMUM))


def test_only_tokens_for_clients_that_left_are_ours_alone(engine: Engine) -> None:
    """vLLM's front end ends a request where a stop string matches or a client goes, and tells the engine core, which
    has gone on; what comes for a request that it no longer knows, it drops uncounted (v1/engine/output_processor.py,
    process_outputs). Drafts and accepted tokens it counts from the step's statistics, so they agree even then."""
    engine.swap([(1, 64, 3)])
    totals = Totals(engine)
    stops = [lambda: post(engine, stop=["a", "e", "o"], max_tokens=LEFT_TOKENS, ignore_eos=True)] * 4
    leavers = [lambda n=n: leave(engine, n) for n in (1, 2, 5, 20)]
    serve(engine, [*stops, *leavers, *orderly(engine)])
    wait_until("the engine is idle", lambda: idle(engine))
    wait_until("equal drafts", lambda: not totals.spec_decode_differences())
    assert 0 <= totals.unseen() <= LEFT_TOKENS * (len(stops) + len(leavers)), json.dumps(totals.gains())


def test_steps_at_k_zero_count_and_empty_ones_do_not(engine: Engine) -> None:
    engine.swap([(1, 64, 0)])
    post(engine, max_tokens=2)  # what was drafted before is verified
    totals = Totals(engine)
    before = {k: engine.server.total("dsd_steps_total", k=str(k)) for k in range(MAXIMUM + 1)}
    post(engine, max_tokens=25, ignore_eos=True)
    wait_until("equal totals", lambda: totals.unseen() == 0)
    after = {k: engine.server.total("dsd_steps_total", k=str(k)) for k in range(MAXIMUM + 1)}
    assert {k: after[k] - before[k] for k in after} == {0: 25, 1: 0, 2: 0, 3: 0, 4: 0}, "one prompt, 24 decode steps"
    assert totals.gains()["dsd_draft_tokens_total"] == 0
