"""Children of kinds that a cluster may not have: what an API server that says no makes of them."""

from typing import Any, Final

from dsd_operator.cluster.errors import ApiError, Forbidden, Retry
from dsd_operator.reconcile.apply import LOOK_AGAIN_SECONDS
from dsd_operator.reconcile.memory import Applied, Memory
from dsd_operator.reconcile.optional import bring, drop
from dsd_operator.render.extras import unwanted
from dsd_operator.render.pod_monitor import pod_monitor
from tests.unit.control.test_apply import FakeServer, Json
from tests.unit.resources import resource

WANTED: Final = resource({"monitoring": {"podMonitor": {"enabled": True}}})
KIND: Final = "PodMonitor"


def _unwanted() -> Json:
    return next(identity for identity in unwanted(resource()) if identity["kind"] == KIND)


class Server(FakeServer):
    """Also reads and deletes; `known`: whether it has the kind."""

    def __init__(self, known: bool = True, fails: ApiError | None = None) -> None:
        super().__init__()
        self.known, self.fails = known, fails
        self.looks, self.deleted = 0, 0

    async def get(self, *_: Any) -> Json | None:
        self.looks += 1
        if self.fails is not None:
            raise self.fails
        return self.live.get(KIND)

    async def serves(self, *_: Any) -> bool:
        return self.known

    async def delete(self, thing: Json) -> None:
        self.deleted += 1
        del self.live[thing["kind"]]


async def test_a_missing_kind_is_named_and_looked_for_again_without_a_backoff() -> None:
    server: Any = Server(known=False)
    report = await bring(server, pod_monitor(WANTED), Memory("u"))
    (failure,) = report.failures
    assert failure.missing_kind
    assert (report.retry, report.again) == (False, LOOK_AGAIN_SECONDS)
    assert not server.applied


async def test_an_api_server_that_asks_for_a_pause_gets_it() -> None:
    for asked, again in ((1.0, LOOK_AGAIN_SECONDS), (90.0, 90.0)):
        server: Any = Server(fails=Retry(429, "later", asked))
        report = await bring(server, pod_monitor(WANTED), Memory("u"))
        assert (report.retry, report.again) == (False, again)


async def test_it_is_applied_once_and_looked_at_in_every_pass() -> None:
    server: Any = Server()
    memory = Memory("u")
    for _ in range(3):
        assert not (await bring(server, pod_monitor(WANTED), memory)).failures
    assert (server.applied, server.looks) == ([KIND], 3)


async def test_rights_that_are_missing_are_told_where_it_is_wanted() -> None:
    server: Any = Server(fails=Forbidden(403, "no podmonitors for you"))
    report = await bring(server, pod_monitor(WANTED), Memory("u"))
    assert [failure.message for failure in report.failures] == ["no podmonitors for you"]
    assert (report.retry, report.again) == (False, LOOK_AGAIN_SECONDS)


async def test_what_is_not_wanted_and_not_there_costs_one_look() -> None:
    server: Any = Server()
    memory = Memory("u")
    identity = _unwanted()
    for _ in range(3):
        report = await drop(server, identity, memory)
        assert not report.failures
    assert (server.looks, server.deleted) == (1, 0)


async def test_what_is_no_longer_wanted_is_deleted_and_can_come_back() -> None:
    server: Any = Server()
    memory = Memory("u")
    await bring(server, pod_monitor(WANTED), memory)
    identity = _unwanted()
    await drop(server, identity, memory)
    assert (server.deleted, server.live) == (1, {})
    await bring(server, pod_monitor(WANTED), memory)
    assert KIND in server.live


async def test_somebody_elses_is_not_deleted() -> None:
    server: Any = Server()
    server.live[KIND] = {"kind": KIND, "metadata": {"name": "demo", "uid": "x", "labels": {}}}
    identity = _unwanted()
    await drop(server, identity, Memory("u"))
    assert server.deleted == 0


async def test_rights_that_are_missing_matter_only_to_what_was_made() -> None:
    server: Any = Server(fails=Forbidden(403, "no"))
    identity = _unwanted()
    never, once = Memory("u"), Memory("u", applied={KIND: Applied("d", "u", "e")})
    assert not (await drop(server, identity, never)).failures
    (failure,) = (await drop(server, identity, once)).failures
    assert "cannot be deleted" in failure.message


async def test_an_api_server_that_does_not_answer_is_asked_again() -> None:
    server: Any = Server(fails=Retry(503, "busy"))
    identity = _unwanted()
    report = await drop(server, identity, Memory("u"))
    assert (report.failures, report.retry, report.again) == ((), False, LOOK_AGAIN_SECONDS)
