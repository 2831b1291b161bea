"""A pod that may be out of reach for good, behind a mesh for example: its resource is looked at ever less often.

A pass reads everything anew, so a thousand such resources would cost the API server more than all changes.
"""

import asyncio
from typing import Any, Final

import pytest

from dsd_operator.reconcile.delivery import Delivery, Target
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.push import Pusher
from dsd_operator.reconcile.queue import Key
from dsd_operator.status.observed import PushResult, PushState
from dsd_runtime.protocol import Revision
from dsd_runtime.schedule import from_triples
from tests.unit.control.clock import FakeClock

TARGET: Final = Target(Key("team-a", "demo"), "audience", Revision(owner="o", number=2), from_triples([(1, 8, 1)]))


class Courier:
    """Comes back with the same word each time."""

    def __init__(self, state: PushState) -> None:
        self.state = state
        self.asked = 0

    async def deliver(self, _target: Target, pod: str, _ip: str, _known: Revision | None) -> Delivery:
        self.asked += 1
        return Delivery(PushResult(pod, self.state))


def pods(number: int) -> list[dict[str, Any]]:
    """Pods that are ready."""
    status = {"phase": "Running", "podIP": "192.0.2.1", "conditions": [{"type": "Ready", "status": "True"}]}
    return [{"metadata": {"name": f"p{n}", "uid": f"u{n}"}, "status": status} for n in range(number)]


async def waits(courier: Any, count: int, passes: int = 12, spread: float = 0.0) -> list[float]:
    """For how long it is left alone after each of so many passes."""
    clock, memory, found = FakeClock(), Memory("uid"), []
    pusher = Pusher(courier, clock, wake=lambda _: None, spread=lambda: spread)
    for _ in range(passes):
        found.append((await pusher.push(TARGET, pods(count), memory)).again)
        clock.advance(found[-1])
    return found


@pytest.mark.parametrize("count", [1, 3])
async def test_no_answer(count: int) -> None:
    courier = Courier(PushState.UNREACHABLE)
    assert await waits(courier, count) == [0.5, 5, 10, 20, 40, 60, 60, 64, 128, 256, 300, 300]
    assert courier.asked == 12 * count, "each pass has asked them"


async def test_a_refused_token_is_worth_more_tries_at_first() -> None:
    """Keys that were rotated are in the pod's file within a minute."""
    assert await waits(Courier(PushState.UNAUTHORIZED), 1) == [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


async def test_a_pod_that_is_still_being_asked_costs_no_passes() -> None:
    """News of it wakes its resource; an engine that hangs would else be looked at twice a second."""

    class Hanging(Courier):
        async def deliver(self, target: Target, pod: str, ip: str, known: Revision | None) -> Delivery:
            await asyncio.sleep(3600)
            return await super().deliver(target, pod, ip, known)

    courier: Any = Hanging(PushState.APPLIED)
    clock = FakeClock()
    pusher = Pusher(courier, clock, wake=lambda _: None, wait=0.01, spread=lambda: 0.0)
    memory = Memory("uid")
    assert [(await pusher.push(TARGET, pods(1), memory)).again for _ in range(3)] == [5, 5, 5]
    pusher.close()


async def test_they_do_not_all_come_at_the_same_time() -> None:
    assert (await waits(Courier(PushState.UNREACHABLE), 1, spread=1.0))[-1] == pytest.approx(360)


@pytest.mark.parametrize("state", [PushState.APPLIED, PushState.REFUSED, PushState.PLUGIN_OFF])
async def test_what_a_pod_said_for_good_is_not_asked_again(state: PushState) -> None:
    assert await waits(Courier(state), 2, passes=2) == [0, 0]
