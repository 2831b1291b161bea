"""The applier: a slow API server holds up no pass, nothing is sent twice, and nothing is forgotten."""

import asyncio
from typing import Any

import pytest

from dsd_operator.cluster.errors import ApiError, Invalid
from dsd_operator.reconcile.applier import Applier
from dsd_operator.reconcile.apply import Report
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.queue import Key
from tests.unit.control.test_apply import ALL, FakeServer, Json, always

KEY = Key("team-a", "demo")


class SlowServer(FakeServer):
    """Answers for a kind once its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, asyncio.Event] = {}

    async def apply(self, manifest: Json) -> Json:
        if manifest["kind"] in self.gates:
            await self.gates[manifest["kind"]].wait()
        return await super().apply(manifest)


class World:
    """An applier with one resource."""

    def __init__(self) -> None:
        self.server, self.memory, self.woken = SlowServer(), Memory("uid"), asyncio.Queue[Key]()
        server: Any = self.server
        self.applier = Applier(server, self.woken.put_nowait, wait=0.05)

    async def run(self, **changes: Any) -> Report:
        """One pass."""
        return await self.applier.apply(KEY, always(changes), dict(self.server.live), self.memory)

    def hold(self, kind: str, refusal: ApiError | None = None) -> asyncio.Event:
        """Let the server take its time over a kind, until the event is set; then it refuses, if it is to."""
        self.server.gates[kind] = asyncio.Event()
        if refusal is not None:
            self.server.refuse[kind] = refusal
        return self.server.gates[kind]

    async def wait_woken(self) -> None:
        """Until the applier asks for a pass."""
        assert await asyncio.wait_for(self.woken.get(), 10) == KEY


@pytest.fixture
def world() -> World:
    return World()


async def test_a_quick_answer_is_that_of_the_pass(world: World) -> None:
    assert [o["kind"] for o in (await world.run()).applied] == ALL
    assert await world.run() == Report()
    assert world.woken.empty()


async def test_a_pass_goes_on_without_a_slow_answer_and_says_so(world: World) -> None:
    gate = world.hold("ConfigMap")
    report = await world.run()
    (failure,) = report.failures
    assert (failure.kind, failure.name, report.retry) == ("ConfigMap", "demo", True)
    assert "admission webhook" in failure.message
    gate.set()
    await world.wait_woken()
    assert await world.run() == Report()
    assert sorted(world.server.applied) == sorted(ALL)


async def test_what_was_stored_before_the_slow_answer_is_told(world: World) -> None:
    """Else the status would take the Deployment from before for one that has the change."""
    await world.run(replicas=1)
    gate = world.hold("Deployment")
    world.server.live["ConfigMap"]["metadata"]["managedFields"] = []
    report = await world.run(replicas=3)
    assert [stored["kind"] for stored in report.applied] == ["ConfigMap"]
    assert not (await world.run(replicas=3)).applied, "the next pass has read it itself"
    gate.set()
    await world.wait_woken()
    assert not world.memory.stored


async def test_nothing_is_sent_beside_a_slow_request(world: World) -> None:
    """Of two requests for one object the older could be carried out last."""
    gate = world.hold("Deployment")
    await world.run(replicas=1)
    assert (await world.run(replicas=2)).failures
    gate.set()
    await world.wait_woken()
    assert not (await world.run(replicas=2)).failures
    assert world.server.applied == [*ALL, "Deployment"]
    assert world.server.live["Deployment"]["spec"]["replicas"] == 2


async def test_a_late_refusal_is_told_and_not_asked_for_again_at_once(world: World) -> None:
    gate = world.hold("ConfigMap", Invalid(422, "no"))
    await world.run()
    gate.set()
    await world.wait_woken()
    (failure,) = (await world.run()).failures
    assert (failure.kind, failure.message) == ("ConfigMap", "no")
    assert world.server.applied.count("ConfigMap") == 1
    assert world.woken.empty()


async def test_what_vanished_meanwhile_comes_back(world: World) -> None:
    gate = world.hold("ConfigMap")
    await world.run()
    gate.set()
    await world.wait_woken()
    del world.server.live["Service"]
    assert [o["kind"] for o in (await world.run()).applied] == ["Service"]


async def test_a_fault_is_raised_once(world: World) -> None:
    gate = world.hold("ConfigMap")
    world.server.refuse["ConfigMap"] = KeyError("bug")  # type: ignore[assignment]
    await world.run()
    gate.set()
    await world.wait_woken()
    with pytest.raises(KeyError):
        await world.run()
    world.server.refuse.clear()
    assert not (await world.run()).failures


@pytest.mark.parametrize("end", ["forget", "close"])
async def test_nothing_wakes_what_is_gone(world: World, end: str) -> None:
    world.hold("ConfigMap")
    await world.run()
    (task,) = (t for t in asyncio.all_tasks() if t.get_name() == "apply demo")
    if end == "forget":
        world.applier.forget(world.memory)
    else:
        world.applier.close()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    assert world.woken.empty()
