"""Workers, wake-ups and the resync: from an event to a pass, and to the next one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from dsd_operator.cluster.errors import ApiError, Gone, Retry
from dsd_operator.cluster.places import Places
from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.echoes import Echoes, sight
from dsd_operator.reconcile.queue import Backoff, Key, WorkQueue
from dsd_operator.reconcile.reconciler import Done
from dsd_operator.reconcile.resync import Resync
from dsd_operator.reconcile.wakeups import Wakeups
from dsd_operator.reconcile.watches import Watches
from dsd_operator.reconcile.workers import Workers
from tests.unit.control.clock import FakeClock

A, B = Key("ns", "a"), Key("ns", "b")


class FakeReconciler:
    """Ends each pass as it is told."""

    def __init__(self) -> None:
        self.ends: dict[Key, Done | Exception] = {}
        self.first_end: dict[Key, Done] = {}
        self.passes: list[Key] = []
        self.running: set[Key] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def reconcile(self, key: Key) -> Done:
        assert key not in self.running, "two passes of one key at the same time"
        self.running.add(key)
        self.passes.append(key)
        await self.gate.wait()
        self.running.discard(key)
        end = self.first_end.pop(key, None) or self.ends.get(key, Done())
        if isinstance(end, Exception):
            raise end
        return end


class World:
    """A queue with workers on a clock that stands still."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.queue = WorkQueue(self.clock, Backoff(first=1.0, jitter=0.0))
        self.wakeups = Wakeups(self.queue, Watches(self.clock))
        self.reconciler, self.metrics = FakeReconciler(), Metrics("1")
        self.finished: list[Key] = []
        reconciler: Any = self.reconciler
        self.workers = Workers(self.queue, self.wakeups, reconciler, self.metrics, self.clock, self.finished.append)

    async def settle(self) -> None:
        """Let the workers do all that they can."""
        for _ in range(20):
            await asyncio.sleep(0)

    def count(self, result: str) -> float:
        """Passes with this result."""
        return self.metrics.registry.get_sample_value("dsd_operator_reconcile_total", {"result": result}) or 0


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    task = asyncio.create_task(made.workers.run(4))
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_success_is_not_repeated(world: World) -> None:
    world.wakeups.resource(A)
    await world.settle()
    world.clock.advance(1000)
    await world.settle()
    assert (world.reconciler.passes, world.finished) == ([A], [A])
    assert world.count("success") == 1


@pytest.mark.parametrize(
    ("end", "result"),
    [
        (Done(retry=True), "retry"),
        (Retry(503, "later"), "error"),
        (Gone(404, "x"), "error"),
        (KeyError("bug"), "error"),
    ],
)
async def test_a_failure_is_repeated_with_growing_delays(world: World, end: Any, result: str) -> None:
    world.reconciler.ends[A] = end
    world.wakeups.resource(A)
    await world.settle()
    for delay in (1, 2, 4):
        world.clock.advance(delay - 0.1)
        await world.settle()
        before = len(world.reconciler.passes)
        world.clock.advance(0.1)
        await world.settle()
        assert len(world.reconciler.passes) == before + 1
    assert world.count(result) == 4


@pytest.mark.parametrize(
    ("end", "gaps"),
    [
        (Done(retry=True, again=5.0), [1, 2, 4, 5, 5]),
        (Done(retry=True, again=5.0, delay=7.0), [7, 7, 7, 7, 7]),
        (Done(again=5.0), [5, 5]),
        (Done(retry=True, again=100.0), [1, 2, 4, 8]),
    ],
    ids=["longer than that", "the server asks for more", "nothing fails", "shorter than that"],
)
async def test_a_failure_does_not_put_off_a_look_that_was_asked_for(world: World, end: Done, gaps: list[float]) -> None:
    """Something that fails for ever (a quota) has a backoff of a minute, and nothing tells of an unwatched kind."""
    world.reconciler.ends[A] = end
    world.wakeups.resource(A)
    await world.settle()
    for number, gap in enumerate(gaps, 1):
        world.clock.advance(gap - 0.1)
        await world.settle()
        assert len(world.reconciler.passes) == number
        world.clock.advance(0.1)
        await world.settle()
        assert len(world.reconciler.passes) == number + 1


async def test_the_server_s_own_delay_counts(world: World) -> None:
    world.reconciler.ends[A] = Retry(429, "slow down", 30.0)
    world.wakeups.resource(A)
    await world.settle()
    world.clock.advance(29)
    await world.settle()
    assert world.reconciler.passes == [A]
    world.clock.advance(1)
    await world.settle()
    assert world.reconciler.passes == [A, A]


async def test_an_error_of_one_key_stops_nobody(world: World) -> None:
    world.reconciler.ends[A] = RuntimeError("bug")
    world.wakeups.resource(A)
    world.wakeups.resource(B)
    await world.settle()
    assert world.reconciler.passes == [A, B]


async def test_an_event_during_a_pass_leads_to_another(world: World) -> None:
    world.reconciler.gate.clear()
    world.wakeups.resource(A)
    await world.settle()
    for _ in range(3):
        world.wakeups.resource(A)
    await world.settle()
    assert world.reconciler.passes == [A]
    world.clock.advance(7)
    assert world.workers.longest_pass() == 7
    world.reconciler.gate.set()
    await world.settle()
    assert world.reconciler.passes == [A, A]
    assert world.workers.longest_pass() == 0


def child(label: str, version: str = "1", kind: str = "Pod", **meta: Any) -> dict[str, Any]:
    labels = {"dsd-operator.io/deployment": label}
    return {
        "kind": kind,
        "metadata": {"namespace": "ns", "name": "a", "resourceVersion": version, "labels": labels} | meta,
    }


async def test_a_child_wakes_its_resource(world: World) -> None:
    world.wakeups.child("ns", child("a"))
    assert world.queue.depth == 0, "nobody knows it yet"
    world.wakeups.learn(A)
    strangers: list[dict[str, Any]] = [child("other"), {"metadata": {}}, {"metadata": {"labels": None}}]
    for stranger in strangers:
        world.wakeups.child("ns", stranger)
    world.wakeups.child("elsewhere", child("a"))
    world.clock.advance(1)
    assert world.queue.depth == 0
    world.wakeups.child("ns", child("a"))
    world.clock.advance(1)
    assert A in world.queue


async def test_a_burst_of_children_s_events_leads_to_one_pass(world: World) -> None:
    world.wakeups.learn(A)
    for version in ("1", "2", "3"):
        world.wakeups.child("ns", child("a", version))
        await world.settle()
    assert world.reconciler.passes == []
    world.clock.advance(1)
    await world.settle()
    world.clock.advance(1)
    await world.settle()
    assert world.reconciler.passes == [A]


@pytest.mark.parametrize("early", [True, False], ids=["during the pass", "after it"])
async def test_what_a_pass_wrote_wakes_nobody(world: World, early: bool) -> None:
    written, later = child("a", "7"), child("a", "8")
    world.reconciler.gate.clear()
    world.wakeups.resource(A)
    await world.settle()
    if early:
        world.wakeups.child("ns", written)
    world.wakeups.watches.echoes.wrote(written)
    world.reconciler.gate.set()
    await world.settle()
    if not early:
        world.wakeups.child("ns", written)
    world.clock.advance(1)
    await world.settle()
    assert world.reconciler.passes == [A]
    world.wakeups.child("ns", later)
    world.clock.advance(1)
    await world.settle()
    assert world.reconciler.passes == [A, A]


def test_kinds_without_a_watch_leave_no_note() -> None:
    """Their names are many, and nothing would ever take the notes away."""
    echoes = Echoes()
    for kind in ("ControllerRevision", "PodMonitor", "LeaderWorkerSet", "InferencePool", "HTTPRoute"):
        echoes.wrote(child("a", "7", kind=kind))
        assert not echoes.know(sight(child("a", "7", kind=kind)))
    for kind in ("DSDDeployment", "Deployment", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy"):
        echoes.wrote(child("a", "7", kind=kind))
        assert echoes.know(sight(child("a", "7", kind=kind)))


@pytest.mark.parametrize(
    ("thing", "deleted"),
    [
        (child("a", "8"), False),
        (child("a", "7", kind="Service"), False),
        (child("a", "7", deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (child("a", "7"), True),
    ],
    ids=["a newer version", "another object", "one that leaves", "one that left"],
)
@pytest.mark.parametrize("early", [True, False], ids=["during the pass", "after it"])
async def test_whatever_else_happens_does(world: World, thing: dict[str, Any], deleted: bool, early: bool) -> None:
    world.reconciler.gate.clear()
    world.wakeups.resource(A)
    await world.settle()
    world.wakeups.watches.echoes.wrote(child("a", "7"))
    if early:
        world.wakeups.child("ns", thing, deleted)
    world.reconciler.gate.set()
    await world.settle()
    if not early:
        world.wakeups.child("ns", thing, deleted)
    world.clock.advance(1)
    await world.settle()
    assert world.reconciler.passes == [A, A]


async def test_children_of_a_long_name_find_it(world: World) -> None:
    from dsd_operator.render.names import names_for

    key = Key("ns", "x" * 200)
    world.wakeups.learn(key)
    world.wakeups.child("ns", child(names_for(key.name).label))
    world.clock.advance(1)
    assert key in world.queue


async def test_a_resource_that_is_gone_is_forgotten(world: World) -> None:
    world.reconciler.ends[A] = Done(gone=True)
    world.wakeups.resource(A)
    await world.settle()
    world.wakeups.child("ns", child("a"))
    world.clock.advance(1)
    assert world.queue.depth == 0
    assert world.count("gone") == 1


async def test_one_that_came_back_meanwhile_is_not(world: World) -> None:
    world.reconciler.first_end[A] = Done(gone=True)
    world.reconciler.gate.clear()
    world.wakeups.resource(A)
    await world.settle()
    world.wakeups.resource(A)  # created anew, while the pass still sees that it is gone
    world.reconciler.gate.set()
    await world.settle()
    assert world.reconciler.passes == [A, A]
    world.wakeups.child("ns", child("a"))
    world.clock.advance(1)
    assert A in world.queue


class FakeApi:
    """Lists what it is told to."""

    def __init__(self) -> None:
        self.there: list[str] = []
        self.errors: list[ApiError] = []
        self.places: list[str | None] = []

    async def names(self, _: object, namespace: str | None) -> list[tuple[str, str]]:
        self.places.append(namespace)
        if self.errors:
            raise self.errors.pop()
        return [(namespace or "ns", name) for name in self.there]


async def test_a_resync_also_visits_what_has_gone(world: World) -> None:
    api = FakeApi()
    api.there = ["a", "b"]
    places = Places(api, ())  # type: ignore[arg-type]
    resync = Resync(api, world.queue, world.wakeups, places, 10.0, lambda: 1.0)  # type: ignore[arg-type]
    assert await resync.first() == {A, B}
    await world.settle()
    assert sorted(world.reconciler.passes) == [A, B]
    api.there = ["a"]
    await resync._again()
    await world.settle()
    assert len(world.reconciler.passes) == 2, "spread over half of the interval"
    world.clock.advance(5)
    await world.settle()
    assert sorted(world.reconciler.passes) == [A, A, B, B]


async def test_each_watched_namespace_is_listed(world: World) -> None:
    api = FakeApi()
    api.there = ["a"]
    places = Places(api, ("one", "two", "three"), ("one", "two"))  # type: ignore[arg-type]
    resync = Resync(api, world.queue, world.wakeups, places, 10.0)  # type: ignore[arg-type]
    assert await resync.first() == {Key("one", "a"), Key("two", "a")}
    assert api.places == ["one", "two"]
