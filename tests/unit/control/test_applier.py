"""The applier: a slow API server holds up no pass, nothing is sent twice, and nothing is forgotten."""

import asyncio
from typing import Any

import pytest

from dsd_operator.cluster.errors import ApiError, Invalid, Retry
from dsd_operator.reconcile.applier import Applier
from dsd_operator.reconcile.apply import LOOK_AGAIN_SECONDS, Report
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.queue import Key
from dsd_operator.render.plan import plan
from tests.unit.control.test_apply import ALL, CACHE, FakeServer, Json, always, stranger
from tests.unit.resources import CONTEXT, resource

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

    async def run_all(self, **changes: Any) -> Report:
        """One pass, over what stands beside the pods as well."""
        manifests = plan(resource(changes), CONTEXT)
        return await self.applier.apply(KEY, manifests, dict(self.server.live), self.memory)

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
    failure, behind = report.failures
    assert (failure.kind, failure.name, report.retry) == ("ConfigMap", "demo", True)
    assert (behind.kind, behind.name) == ("Deployment", "demo"), "its pods need the ConfigMap"
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


async def test_a_late_refusal_says_nothing_of_what_is_wanted_since(world: World) -> None:
    gate = world.hold("Deployment", Invalid(422, "no"))
    await world.run(replicas=1)
    gate.set()
    await world.wait_woken()
    world.server.refuse.clear()
    assert not (await world.run(replicas=2)).failures
    assert world.server.live["Deployment"]["spec"]["replicas"] == 2


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


async def test_what_stands_beside_the_pods_holds_up_nothing_that_serves(world: World) -> None:
    gate = world.hold("PodDisruptionBudget")
    report = await world.run_all(replicas=1)
    (failure,) = report.failures
    assert (failure.kind, report.retry, report.again) == ("PodDisruptionBudget", False, LOOK_AGAIN_SECONDS)
    assert sorted(o["kind"] for o in report.applied) == sorted(ALL)

    report = await world.run_all(replicas=3)
    assert [o["kind"] for o in report.applied] == ["Deployment"]
    assert [failure.kind for failure in report.failures] == ["PodDisruptionBudget"]
    assert world.server.live["Deployment"]["spec"]["replicas"] == 3
    gate.set()
    await world.wait_woken()
    assert await world.run_all(replicas=3) == Report()
    assert world.server.applied.count("PodDisruptionBudget") == 1, "never two at a time"


async def test_and_waits_for_nothing_either(world: World) -> None:
    world.hold("ConfigMap")
    await world.run_all()
    assert "PodDisruptionBudget" in world.server.live
    world.applier.close()


async def test_a_workload_that_was_not_sent_is_a_failure(world: World) -> None:
    """Only its revision is on the way, without which no pod is worse off; but the new pods are not asked for yet."""
    await world.run(replicas=1)
    revision = {"kind": "ControllerRevision", "apiVersion": "apps/v1"}
    gate = world.hold("ControllerRevision")

    async def run(replicas: int) -> list[str]:
        workload, *others = reversed(always({"replicas": replicas}))
        manifests = [revision | {"metadata": workload["metadata"]}, *others, workload]
        report = await world.applier.apply(KEY, manifests, dict(world.server.live), world.memory)
        return [failure.kind for failure in report.failures]

    assert await run(2) == ["ControllerRevision", "Deployment"]
    assert await run(1) == ["ControllerRevision", "Deployment"], "what is on its way is another one"
    gate.set()
    await world.wait_woken()
    assert await run(1) == []
    assert world.server.live["Deployment"]["spec"]["replicas"] == 1


async def test_one_that_is_there_already_is_none(world: World) -> None:
    await world.run(replicas=1)
    world.hold("ConfigMap")
    world.server.live["ConfigMap"]["metadata"]["managedFields"] = []
    assert [failure.kind for failure in (await world.run(replicas=1)).failures] == ["ConfigMap"]
    world.applier.close()


async def test_a_stranger_s_claim_that_was_seen_late_still_holds_up_the_workload(world: World) -> None:
    gate = world.hold("ConfigMap")
    world.server.live["PersistentVolumeClaim"] = stranger("PersistentVolumeClaim")
    await world.run_all(**CACHE)
    gate.set()
    await world.wait_woken()
    for _ in range(2):
        assert [failure.kind for failure in (await world.run_all(**CACHE)).failures] == ["PersistentVolumeClaim"]
    assert "Deployment" not in world.server.live


async def test_so_does_one_that_could_not_be_read(world: World) -> None:
    gate = world.hold("ConfigMap")
    world.server.unreadable["PersistentVolumeClaim"] = Retry(503, "busy")
    await world.run_all(**CACHE)
    gate.set()
    await world.wait_woken()
    await world.run_all(**CACHE)
    assert "Deployment" not in world.server.live
