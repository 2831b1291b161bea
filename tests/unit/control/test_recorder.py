"""Events are told once, and one that the API server did not take counts as not told."""

from datetime import UTC, datetime
from typing import Any

from dsd_operator.cluster.errors import ApiError
from dsd_operator.reconcile.events import Recorder
from dsd_operator.status.events import Event
from tests.unit.control.clock import FakeClock

BODY = {"metadata": {"uid": "u", "namespace": "team-a", "name": "demo", "resourceVersion": "7"}}
EVENT = Event("Warning", "Unschedulable", "no node")


class ApiServer:
    """Takes Events, or fails as many times as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.taken: list[str] = []

    async def create(self, _kind: object, _namespace: str, manifest: dict[str, Any]) -> None:
        if self.failures:
            self.failures -= 1
            raise ApiError(500, "etcd is away")
        self.taken.append(manifest["reason"])


def recorder(server: ApiServer, clock: FakeClock) -> Recorder:
    """One that writes to this server."""
    client: Any = server
    return Recorder(client, "operator-1", lambda: datetime(2030, 1, 1, tzinfo=UTC), clock.time)


async def test_what_flips_back_and_forth_is_told_once_in_five_minutes() -> None:
    server, clock = ApiServer(), FakeClock()
    made = recorder(server, clock)
    for _ in range(3):
        await made.post(BODY, [EVENT])
        clock.advance(100)
    assert server.taken == ["Unschedulable"]
    clock.advance(1)
    await made.post(BODY, [EVENT])
    assert server.taken == ["Unschedulable"] * 2


async def test_an_event_that_was_refused_is_told_the_next_time() -> None:
    server = ApiServer(failures=1)
    made = recorder(server, FakeClock())
    await made.post(BODY, [EVENT])
    assert server.taken == []
    await made.post(BODY, [EVENT])
    assert server.taken == ["Unschedulable"]
