"""The work queue: once, one at a time, and later when it fails."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsd_operator.reconcile.queue import Backoff, Key, WorkQueue
from tests.unit.control.clock import FakeClock

A, B = Key("ns", "a"), Key("ns", "b")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue:
    return WorkQueue(clock, Backoff(first=1.0, limit=60.0, jitter=0.0))


async def taken(queue: WorkQueue) -> Iterator[Key]:
    """Everything that can be taken without waiting."""
    found: list[Key] = []
    while True:
        task = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        if not task.done():
            task.cancel()
            return iter(found)
        found.append(task.result())


async def test_a_key_added_twice_comes_once(queue: WorkQueue) -> None:
    queue.add(A)
    queue.add(B)
    queue.add(A)
    assert list(await taken(queue)) == [A, B]


async def test_a_key_that_runs_comes_again_only_when_it_is_done(queue: WorkQueue) -> None:
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    assert list(await taken(queue)) == []
    queue.done(A)
    assert list(await taken(queue)) == [A]


async def test_a_waiting_worker_is_woken_by_done(queue: WorkQueue) -> None:
    queue.add(A)
    await queue.get()
    queue.add(A)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done(A)
    assert await waiting == A


async def test_who_waits_longest_comes_first(queue: WorkQueue) -> None:
    queue.add(B)
    queue.add(A)
    queue.add(B)
    assert await queue.get() == B


async def test_of_several_delays_the_earliest_counts(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after(A, 10)
    queue.add_after(A, 2)
    queue.add_after(A, 5)
    clock.advance(1.9)
    assert list(await taken(queue)) == []
    clock.advance(0.1)
    assert list(await taken(queue)) == [A]
    queue.done(A)
    clock.advance(100)
    assert list(await taken(queue)) == []


async def test_an_event_does_not_wait_for_the_backoff(queue: WorkQueue, clock: FakeClock) -> None:
    for _ in range(5):
        queue.retry(A)
    queue.add(A)
    assert list(await taken(queue)) == [A]
    queue.done(A)
    clock.advance(1000)
    assert list(await taken(queue)) == [], "the add took the place of the retry"


def test_retries_back_off_and_success_ends_that(queue: WorkQueue) -> None:
    assert [queue.retry(A) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert queue.retry(B) == 1
    queue.succeeded(A)
    assert queue.retry(A) == 1


def test_the_server_may_ask_for_more(queue: WorkQueue) -> None:
    assert queue.retry(A, at_least=30) == 30


async def test_forget_drops_timer_and_failures_but_no_new_wish(queue: WorkQueue, clock: FakeClock) -> None:
    queue.retry(A)
    queue.add(B)
    queue.forget(A)
    queue.forget(B)
    clock.advance(100)
    assert list(await taken(queue)) == [B]
    assert queue.retry(A) == 1


@settings(deadline=None)
@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_delay_stays_within_its_jitter_and_limit(failures: int, spread: float) -> None:
    backoff = Backoff(first=0.5, limit=60.0, jitter=0.2)
    assert 0.4 <= backoff.delay(failures, spread) <= 72.0


@settings(deadline=None)
@given(st.lists(st.sampled_from(["add", "take", "done", "later", "retry"]), max_size=60))
def test_no_key_is_lost_or_handed_out_twice(steps: list[str]) -> None:
    asyncio.run(_random_walk(steps))


async def _random_walk(steps: list[str]) -> None:
    clock = FakeClock()
    queue, running, wanted = WorkQueue(clock, spread=lambda: 0.5), False, False
    for step in steps:
        match step:
            case "add":
                queue.add(A)
                wanted = True
            case "later":
                queue.add_after(A, 1)
                clock.advance(1)
                wanted = True
            case "retry":
                queue.retry(A)
                clock.advance(100)
                wanted = True
            case "done":
                queue.done(A)
                running = False
            case "take":
                found = list(await taken(queue))
                assert found == ([A] if wanted and not running else [])
                running, wanted = (True, False) if found else (running, wanted)
