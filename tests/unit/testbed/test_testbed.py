"""The test bed itself: load that fails is seen to fail, waits end, counters are read right, schedules are valid."""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web

from dsd_runtime.schedule import from_triples, validate
from tools.testbed.engine import pod_url
from tools.testbed.handle import is_applied, is_ready
from tools.testbed.load import Load
from tools.testbed.manifests import MAX_TOKENS
from tools.testbed.metrics import decode_steps_by_k, growth, steps_by_k, total
from tools.testbed.waiting import WaitTimeoutError, wait_for
from tools.testbed.workload import prompts, schedules, tokens_for

METRICS = """\
# TYPE dsd_steps_total counter
dsd_steps_total{k="0",concurrency="1"} 3
dsd_steps_total{k="4",concurrency="1"} 5
dsd_steps_total{k="4",concurrency="8"} 7
# TYPE dsd_step_duration_seconds histogram
dsd_step_duration_seconds_bucket{k="4",le="+Inf"} 6
dsd_step_duration_seconds_count{k="4"} 6
dsd_step_duration_seconds_sum{k="4"} 0.5
"""


def event(tokens: list[int]) -> str:
    return f"data: {json.dumps({'choices': [{'token_ids': tokens}]})}\n\n"


ANSWERS = {
    "/good": (200, event([1, 2]) + event([3]) + "data: [DONE]\n\n"),
    "/short": (200, event([1, 2]) + "data: [DONE]\n\n"),
    "/cut": (200, event([1, 2]) + event([3])),
    "/error": (200, event([1]) + 'data: {"error": {"message": "the engine died"}}\n\n'),
    "/refused": (503, "no engine"),
}


@pytest.fixture
def server() -> Iterator[str]:
    """A server whose answers to completions are those of ANSWERS, by the prefix of the path."""
    loop, ready, ports = asyncio.new_event_loop(), threading.Event(), list[int]()

    async def answer(request: web.Request) -> web.Response:
        status, body = ANSWERS[request.path.removesuffix("/v1/completions")]
        return web.Response(status=status, text=body)

    async def start() -> None:
        app = web.Application()
        app.router.add_post("/{kind}/v1/completions", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ports.append(runner.addresses[0][1])
        ready.set()

    thread = threading.Thread(target=lambda: (loop.run_until_complete(start()), loop.run_forever()), daemon=True)
    thread.start()
    assert ready.wait(10)
    yield f"http://127.0.0.1:{ports[0]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def load_once(url: str) -> Load:
    load = Load([url], [(5, 6)], 1, 3)
    with load:
        wait_for("one answer", lambda: len(load.answers), lambda count: count > 0, 10, 0.01)
    return load


def test_load_keeps_the_tokens_of_good_answers(server: str) -> None:
    load = load_once(f"{server}/good")
    assert load.failures == []
    assert load.answers[0].tokens == (1, 2, 3)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("short", "2 tokens instead of 3"),
        ("cut", "ended without"),
        ("error", "engine died"),
        ("refused", "HTTP 503: no engine"),
    ],
)
def test_load_counts_what_did_not_end_as_asked(server: str, kind: str, message: str) -> None:
    load = load_once(f"{server}/{kind}")
    assert len(load.failures) == len(load.answers)
    assert message in str(load.failures[0].error)


def test_load_counts_a_refused_connection() -> None:
    assert "ClientConnectorError" in str(load_once("http://127.0.0.1:1").failures[0].error)


def test_a_fault_of_the_clients_themselves_is_raised() -> None:
    with pytest.raises(RuntimeError, match="clients themselves"), Load([], [(5, 6)], 1, 3):
        pass


def test_waiting_ends_and_says_what_it_saw_last() -> None:
    states = itertools.count()
    assert wait_for("three", lambda: next(states), lambda n: n == 3, 10, 0) == 3
    with pytest.raises(WaitTimeoutError, match=r"waited 0 s for a miracle; last seen: (?s:.*)nothing"):
        wait_for("a miracle", lambda: {"state": "nothing"}, lambda _: False, 0)


def test_waiting_outlives_a_peer_that_is_away_and_reports_it() -> None:
    def broken() -> bool:
        raise ConnectionRefusedError("nobody home")

    with pytest.raises(WaitTimeoutError, match="nobody home"):
        wait_for("somebody", broken, bool, 0)


def test_counters_are_summed_by_k() -> None:
    assert steps_by_k(METRICS) == {0: 3, 4: 12}
    assert decode_steps_by_k(METRICS) == {4: 6}
    assert total(METRICS, "dsd_steps_total") == 15
    assert growth({0: 3.0, 4: 12.0}, {0: 3.0, 4: 13.0, 2: 1.0}) == {4: 1.0, 2: 1.0}


def test_schedules_are_valid_and_change_each_time() -> None:
    found = list(itertools.islice(schedules("any"), 200))
    assert [problem for s in found for problem in validate(s, MAX_TOKENS)] == []
    assert all(a != b for a, b in itertools.pairwise(found))
    assert {0, MAX_TOKENS} <= {r.num_speculative_tokens for s in found for r in s}
    assert found == list(itertools.islice(schedules("any"), 200)), "the same every time"
    assert tokens_for(from_triples([(1, 2, 4), (9, 16, 1)]), 8) == {4}


def test_prompts_are_the_same_every_time_and_differ() -> None:
    assert prompts(12) == prompts(12)
    assert len(set(prompts(12))) == 12


def test_addresses_get_their_brackets() -> None:
    assert pod_url("10.0.0.1") == "http://10.0.0.1:8000"
    assert pod_url("fd00::1") == "http://[fd00::1]:8000"


def resource(seen: int, **schedule: object) -> dict[str, object]:
    ready = {"type": "Ready", "status": "True", "observedGeneration": seen}
    return {"metadata": {"generation": 2}, "status": {"conditions": [ready], "schedule": schedule}}


@pytest.mark.parametrize(
    ("check", "yes", "no"),
    [
        (is_ready, resource(2), resource(1)),
        (
            lambda r: is_applied(r, "new"),
            resource(2, observedGeneration=2, hash="new", podsApplied=1, podsTotal=1),
            resource(2, observedGeneration=1, hash="new", podsApplied=1, podsTotal=1),
        ),
        (
            lambda r: is_applied(r, "new"),
            resource(2, observedGeneration=2, hash="new", podsApplied=3, podsTotal=3),
            resource(2, observedGeneration=2, hash="new", podsApplied=2, podsTotal=3),
        ),
    ],
)
def test_a_status_of_an_older_generation_or_of_some_pods_is_not_enough(
    check: Callable[[dict[str, object]], bool], yes: dict[str, object], no: dict[str, object]
) -> None:
    assert check(yes)
    assert not check(no)
    assert not check({"metadata": {"generation": 2}})
