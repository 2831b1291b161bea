"""Pushing a schedule over real HTTP, to servers that behave well and to others that do not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from dsd_operator.engine.address import pod_url
from dsd_operator.engine.client import EngineClient
from dsd_operator.reconcile.delivery import Courier, Target
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.push import Pusher, Report
from dsd_operator.reconcile.queue import Key
from dsd_operator.status.observed import PushState
from dsd_runtime.protocol import (
    PROBLEM_CONTENT_TYPE,
    SCHEDULE_PATH,
    STATUS_PATH,
    EngineCoreState,
    EngineStatus,
    ErrorState,
    ProblemDocument,
    Revision,
    SchedulePut,
    ScheduleState,
    Versions,
)
from dsd_runtime.schedule import Ranges, Smoothing, from_triples, schedule_hash
from tests.unit.control.clock import FakeClock

OLD, NEW = from_triples([(1, 8, 3)]), from_triples([(1, 8, 1)])
CALM = Smoothing(dwell_steps=20, margin_percent=10)
KEY = Key("team-a", "demo")


def revision(number: int) -> Revision:
    return Revision(owner="team-a/demo/uid", number=number)


def target(number: int = 2, ranges: Ranges = NEW, smoothing: Smoothing | None = None) -> Target:
    return Target(KEY, "audience", revision(number), ranges, smoothing)


def problem(status: int, detail: str = "no") -> web.Response:
    document = ProblemDocument(type="urn:test", title="Refused", status=status, detail=detail)
    return web.Response(status=status, text=document.model_dump_json(by_alias=True), content_type=PROBLEM_CONTENT_TYPE)


class Engine:
    """A pod's HTTP server. `answer` may take the place of what it does with a PUT."""

    def __init__(self) -> None:
        self.status = _status(1, OLD)
        self.seen: list[str] = []
        self.answer: Callable[[web.Request], Awaitable[web.Response | None]] | None = None
        self.hang = asyncio.Event()
        self.hang.set()

    async def get(self, _: web.Request) -> web.Response:
        self.seen.append("GET")
        await self.hang.wait()
        return web.json_response(self.status.dump())

    async def put(self, request: web.Request) -> web.Response:
        self.seen.append("PUT")
        await self.hang.wait()
        special = await self.answer(request) if self.answer else None
        if special is not None:
            return special
        body = SchedulePut.model_validate_json(await request.read())
        self.status = _status(body.revision.number, body.ranges, smoothing=body.smoothing)
        return web.json_response(self.status.dump())


def _status(number: int | None, ranges: Ranges, mode: Any = "on", smoothing: Smoothing | None = None) -> EngineStatus:
    held = revision(number) if number is not None else None
    hash_ = schedule_hash(ranges, smoothing)
    state = ScheduleState(revision=held, hash=hash_, source="http", ranges=ranges, smoothing=smoothing)
    core = EngineCoreState(engine=0, schedule=state, num_speculative_tokens=1, steps=5)
    return EngineStatus(mode=mode, versions=Versions(runtime="1", vllm="9.9"), schedule=state, engines=(core,))


class FakeTokens:
    """Mints "1", "2", … for whoever refused the one before."""

    def __init__(self) -> None:
        self.number = 1

    async def get(self, _: str) -> str:
        return str(self.number)

    def drop(self, _: str, refused: str) -> None:
        if refused == str(self.number):
            self.number += 1


class FakeKeys:
    """Counts the looks at the keys."""

    def __init__(self) -> None:
        self.looks = 0

    async def current(self, _: float) -> None:
        self.looks += 1


class World:
    """Engines on one port and several loopback addresses, and a pusher that talks to them."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.clock = FakeClock()
        self.tokens, self.keys = FakeTokens(), FakeKeys()
        self.woken: list[Key] = []
        self.awake = asyncio.Event()
        self.memory = Memory("uid")
        self.pods: list[dict[str, Any]] = []
        self._port = 0

    def wake(self, key: Key) -> None:
        """Called when a late delivery has something new to say."""
        self.woken.append(key)
        self.awake.set()

    async def engine(self) -> Engine:
        """One more pod, ready, with an engine behind it."""
        made = Engine()
        application = web.Application()
        application.add_routes([web.get(STATUS_PATH, made.get), web.put(SCHEDULE_PATH, made.put)])
        await self._serve(application)
        return made

    async def _serve(self, application: web.Application) -> None:
        address = f"127.0.88.{len(self.pods) + 1}"
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, address, self._port)
        await site.start()
        self._port = self._port or runner.addresses[0][1]
        self.pod(address)

    async def other_server(self, status: int, text: str, content_type: str) -> None:
        """One more pod, in which something else answers."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=status, text=text, content_type=content_type)

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        await self._serve(application)

    def pod(self, address: str | None, ready: bool = True, **status: Any) -> dict[str, Any]:
        """One more pod."""
        number = len(self.pods)
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        made = {
            "metadata": {"name": f"pod-{number}", "uid": f"uid-{number}"},
            "status": {
                "phase": "Running",
                "conditions": [condition],
                **({"podIP": address} if address else {}),
                **status,
            },
        }
        self.pods.append(made)
        return made

    async def pusher(self, wait: float = 20.0) -> Pusher:
        """A pusher that waits for the engines; tests of slowness make it wait for nothing."""
        engines = EngineClient(port=self._port, connect=5.0, total=20.0)
        await engines.open()
        self._stack.push_async_callback(engines.close)
        courier = Courier(engines, self.tokens, self.keys)  # type: ignore[arg-type]
        made = Pusher(courier, self.clock, self.wake, wait)
        self._stack.callback(made.close)
        return made


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(stack)


def states(report: Report) -> list[PushState]:
    return [result.state for result in report.results]


async def test_a_new_pod_is_asked_first_and_then_written(world: World) -> None:
    engine = await world.engine()
    pusher = await world.pusher()
    report = await pusher.push(target(), world.pods, world.memory)
    assert states(report) == [PushState.APPLIED]
    assert engine.seen == ["GET", "PUT"]
    assert engine.status.schedule is not None
    assert engine.status.schedule.ranges == NEW


async def test_what_pods_have_in_common_is_in_memory_once(world: World) -> None:
    engines = [await world.engine() for _ in range(2)]
    for engine in engines:
        engine.status = _status(2, NEW)
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    one, other = (result.status for result in report.results)
    assert one is not None
    assert other is not None
    assert one == other == engines[0].status
    assert one.schedule is other.schedule is one.engines[0].schedule
    assert one.versions is other.versions


async def test_a_change_goes_out_at_once(world: World) -> None:
    engine = await world.engine()
    pusher = await world.pusher()
    await pusher.push(target(), world.pods, world.memory)
    engine.seen.clear()
    await pusher.push(target(3, OLD), world.pods, world.memory)
    assert engine.seen == ["PUT"]


async def test_a_pod_that_has_it_is_only_read(world: World) -> None:
    engine = await world.engine()
    engine.status = _status(2, NEW)
    pusher = await world.pusher()
    for _ in range(3):
        assert states(await pusher.push(target(), world.pods, world.memory)) == [PushState.APPLIED]
    assert engine.seen == ["GET"] * 3
    assert not (await pusher.push(target(), world.pods, world.memory)).again


async def test_smoothing_travels_with_the_schedule_and_is_turned_off_by_one_without(world: World) -> None:
    engine = await world.engine()
    pusher = await world.pusher()
    for number, smoothing in ((2, CALM), (3, None)):
        report = await pusher.push(target(number, smoothing=smoothing), world.pods, world.memory)
        assert states(report) == [PushState.APPLIED]
        assert engine.status.schedule is not None
        assert (engine.status.schedule.ranges, engine.status.schedule.smoothing) == (NEW, smoothing)


@pytest.mark.parametrize(("wanted", "held"), [(CALM, None), (None, CALM), (CALM, Smoothing(dwell_steps=20))])
async def test_a_pod_with_another_smoothing_is_not_applied(
    world: World, wanted: Smoothing | None, held: Smoothing | None
) -> None:
    engine = await world.engine()
    engine.status = _status(2, NEW, smoothing=held)

    async def accept_and_stay(_: web.Request) -> web.Response:
        return web.json_response(engine.status.dump())

    engine.answer = accept_and_stay
    report = await (await world.pusher()).push(target(smoothing=wanted), world.pods, world.memory)
    assert states(report) == [PushState.REFUSED]
    assert engine.seen == ["GET", "PUT"]


async def test_one_engine_core_that_lags_is_not_applied(world: World) -> None:
    engine = await world.engine()
    done, lagging = _status(2, NEW), _status(1, OLD)
    engine.status = done.model_copy(update={"engines": (*done.engines, *lagging.engines)})

    async def accept(_: web.Request) -> web.Response:
        return web.json_response(engine.status.dump())

    engine.answer = accept
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.REFUSED]


@pytest.mark.parametrize("code", [401, 403])
async def test_a_refused_token_is_minted_anew_once(world: World, code: int) -> None:
    engine = await world.engine()
    used = []

    async def only_the_second(request: web.Request) -> web.Response | None:
        used.append(request.headers["Authorization"])
        return problem(code) if request.headers["Authorization"] == "Bearer 1" else None

    engine.answer = only_the_second
    assert states(await (await world.pusher()).push(target(), world.pods, world.memory)) == [PushState.APPLIED]
    assert used == ["Bearer 1", "Bearer 2"]
    assert world.keys.looks == 1


async def test_a_pod_that_refuses_every_token_is_told_apart(world: World) -> None:
    engine = await world.engine()

    async def never(_: web.Request) -> web.Response:
        return problem(401, "expired")

    engine.answer = never
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.UNAUTHORIZED]
    assert report.results[0].message == "expired"
    assert report.again
    assert engine.seen == ["GET", "PUT", "PUT"]


@pytest.mark.parametrize("code", [400, 413, 422])
async def test_what_the_engine_refuses_is_not_repeated(world: World, code: int) -> None:
    engine = await world.engine()

    async def impossible(_: web.Request) -> web.Response:
        return problem(code, "K=9 is above the maximum")

    engine.answer = impossible
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.REFUSED]
    assert "K=9" in report.results[0].message
    assert not report.again


async def test_an_engine_core_that_does_not_answer_is_unknown(world: World) -> None:
    engine = await world.engine()

    async def unavailable(_: web.Request) -> web.Response:
        return problem(503)

    engine.answer = unavailable
    assert states(await (await world.pusher()).push(target(), world.pods, world.memory)) == [PushState.UNREACHABLE]


@pytest.mark.parametrize(("held", "above"), [(9, 9), (2, 2), (None, 2)])
async def test_a_pod_that_is_ahead_asks_for_a_higher_revision(world: World, held: int | None, above: int) -> None:
    engine = await world.engine()
    engine.status = _status(held, OLD)

    async def stale(_: web.Request) -> web.Response:
        return problem(409)

    engine.answer = stale
    report = await (await world.pusher()).push(target(2), world.pods, world.memory)
    (overtaken,) = report.overtaken
    assert overtaken.number == above
    assert overtaken != target(2).revision


async def test_plugin_off_is_its_own_state(world: World) -> None:
    engine = await world.engine()
    why = ErrorState(source="start", message="pipeline parallelism", time="2026-01-01T00:00:00Z")
    engine.status = _status(None, OLD, mode="off").model_copy(update={"last_error": why})
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.PLUGIN_OFF]
    assert report.results[0].message.endswith("vLLM 9.9: pipeline parallelism")
    assert engine.seen == ["GET"]


@pytest.mark.parametrize(
    ("status", "text", "content_type", "state"),
    [
        (404, '{"detail": "Not Found"}', "application/json", PushState.PLUGIN_OFF),
        (403, "RBAC: access denied", "text/plain", PushState.UNREACHABLE),
        (404, "no such host", "text/plain", PushState.UNREACHABLE),
        (302, "", "text/html", PushState.UNREACHABLE),
        (200, "<html>", "text/html", PushState.UNREACHABLE),
        (200, "{}", "application/json", PushState.UNREACHABLE),
        (503, "upstream connect error", "text/plain", PushState.UNREACHABLE),
        (500, "{", PROBLEM_CONTENT_TYPE, PushState.UNREACHABLE),
    ],
)
async def test_what_is_not_our_runtime_is_never_a_refusal(
    world: World, status: int, text: str, content_type: str, state: PushState
) -> None:
    await world.other_server(status, text, content_type)
    assert states(await (await world.pusher()).push(target(), world.pods, world.memory)) == [state]


async def test_nobody_listens(world: World) -> None:
    await world.engine()
    world.pod("127.0.88.200")
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.APPLIED, PushState.UNREACHABLE]


async def test_a_pod_that_hangs_holds_up_nobody_and_wakes_later(world: World) -> None:
    slow, quick = await world.engine(), await world.engine()
    slow.hang.clear()
    pusher = await world.pusher(wait=0.2)
    report = await pusher.push(target(), world.pods, world.memory)
    assert states(report) == [PushState.UNREACHABLE, PushState.APPLIED]
    assert quick.seen == ["GET", "PUT"]
    assert world.woken == []
    again = await pusher.push(target(), world.pods, world.memory)
    assert states(again) == [PushState.UNREACHABLE, PushState.APPLIED]
    assert slow.seen == ["GET"], "the first delivery is still on its way"

    slow.hang.set()
    await asyncio.wait_for(world.awake.wait(), 20)
    assert world.woken == [KEY]
    assert slow.status.schedule is not None
    assert slow.status.schedule.ranges == NEW


async def test_a_newer_schedule_takes_the_place_of_one_on_its_way(world: World) -> None:
    slow = await world.engine()
    slow.hang.clear()
    pusher = await world.pusher(wait=0.1)
    await pusher.push(target(2, NEW), world.pods, world.memory)
    await pusher.push(target(3, OLD), world.pods, world.memory)
    slow.hang.set()
    await asyncio.wait_for(world.awake.wait(), 20)
    assert slow.status.schedule is not None
    assert slow.status.schedule.revision == revision(3)


async def test_after_two_failures_a_pod_is_left_in_peace_for_a_while(world: World) -> None:
    await world.engine()
    world.pods.clear()
    world.pod("127.0.88.201")
    pusher, engine = await world.pusher(), world.memory
    for _ in range(2):
        await pusher.push(target(), world.pods, engine)
    record = engine.pods["uid-0"]
    assert record.failures == 2
    assert states(await pusher.push(target(), world.pods, engine)) == [PushState.UNREACHABLE]
    assert record.failures == 2, "not asked again"
    world.clock.advance(5.1)
    await pusher.push(target(), world.pods, engine)
    assert record.failures == 3
    assert record.not_before == pytest.approx(world.clock.now + 10)


async def test_only_pods_that_can_serve_are_counted_and_only_ready_ones_asked(world: World) -> None:
    engine = await world.engine()
    world.pods.clear()
    world.pod("127.0.88.1", ready=False)
    world.pod(None)
    world.pod("127.0.88.1", phase="Failed")
    world.pod("127.0.88.1", phase="Succeeded")
    world.pod("127.0.88.1")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    report = await (await world.pusher()).push(target(), world.pods, world.memory)
    assert states(report) == [PushState.NOT_READY, PushState.NOT_READY]
    assert engine.seen == []
    assert not report.again


async def test_records_of_pods_that_are_gone_go(world: World) -> None:
    await world.engine()
    pusher = await world.pusher()
    await pusher.push(target(), world.pods, world.memory)
    await pusher.push(target(), [], world.memory)
    assert world.memory.pods == {}


async def test_no_proxy_sees_a_token(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.88.250:9")
    await world.engine()
    assert states(await (await world.pusher()).push(target(), world.pods, world.memory)) == [PushState.APPLIED]


@pytest.mark.parametrize(
    ("ip", "url"),
    [
        ("10.0.0.1", "http://10.0.0.1:8000/x"),
        ("fd00:10::7", "http://[fd00:10::7]:8000/x"),
        ("::1", "http://[::1]:8000/x"),
        ("FD00:10:0:0::7", "http://[fd00:10::7]:8000/x"),
    ],
)
def test_addresses_are_bracketed(ip: str, url: str) -> None:
    assert pod_url(ip, "/x") == url


@pytest.mark.parametrize("ip", ["", "pod.example", "10.0.0.1/8", "10.0.0.1@evil", "[::1]"])
def test_what_is_no_address_is_no_url(ip: str) -> None:
    with pytest.raises(ValueError, match="address"):
        pod_url(ip, "/x")


async def test_a_pod_that_was_late_is_not_waited_for_again_until_it_answers(world: World) -> None:
    slow, quick = await world.engine(), await world.engine()
    slow.hang.clear()
    pusher = await world.pusher(wait=0.05)
    await pusher.push(target(), world.pods, world.memory)
    pusher.wait = 1e9  # longer than the test may take
    async with asyncio.timeout(60):
        report = await pusher.push(target(3, OLD), world.pods, world.memory)
    assert states(report) == [PushState.UNREACHABLE, PushState.APPLIED]
    assert quick.status.schedule is not None
    assert quick.status.schedule.ranges == OLD
    slow.hang.set()
    await world.awake.wait()
    assert world.memory.pods["uid-0"].delivery is not None
    await pusher.push(target(3, OLD), world.pods, world.memory)
    assert not world.memory.pods["uid-0"].late
    report = await pusher.push(target(4, NEW), world.pods, world.memory)
    assert states(report) == [PushState.APPLIED] * 2
