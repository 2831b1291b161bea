"""Requests of the operator that fail in every way there is: it converges, destroys nothing, does not hammer."""

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final

import pytest

from tests.faults import faults
from tests.faults.calls import Call
from tests.faults.proxy import Fault
from tests.faults.stage import Stage
from tests.integration.world import FIRST, SECOND, THIRD, Triples
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

Pick = Callable[[Call], bool]

SECONDS: Final = 30.0
PAUSE: Final = 2
"""Seconds that the API server asks for."""

HITS: Final = 12
"""So many requests meet the fault before it ends: more than one pass has."""


def own(call: Call) -> bool:
    """A request of the operator's client."""
    return not call.framework


def reads(call: Call) -> bool:
    """It looks at objects."""
    return own(call) and call.read


def writes(call: Call) -> bool:
    """It changes them."""
    return own(call) and call.write


def config_map(call: Call) -> bool:
    """It writes the schedule's file."""
    return call.write and call.plural == "configmaps"


def status(call: Call) -> bool:
    """It writes the status."""
    return call.write and call.parts[3] == "status"


def tokens(call: Call) -> bool:
    """It asks for a token for the pods."""
    return call.verb == "POST" and call.parts[3] == "token"


CASES: Final[dict[str, tuple[Pick, Fault, int]]] = {
    "reads-409": (reads, faults.refuse(409), HITS),
    "reads-410": (reads, faults.refuse(410), HITS),
    "reads-500": (reads, faults.refuse(500), HITS),
    "reads-503": (reads, faults.refuse(503), HITS),
    "reads-reset": (reads, faults.reset, HITS),
    "reads-nonsense": (reads, faults.nonsense, HITS),
    "reads-slow": (reads, faults.slow(0.7), 6),
    "writes-409": (writes, faults.refuse(409), 3),
    "writes-500": (writes, faults.refuse(500), 3),
    "writes-reset": (writes, faults.reset, 3),
    "writes-lost": (writes, faults.carry_out_and_reset, 3),
    "writes-failed-done": (writes, faults.carry_out_and_fail, 3),
    "writes-slow": (writes, faults.slow(1.0), 2),
    "everything-503": (own, faults.refuse(503), HITS),
    "everything-reset": (lambda _: True, faults.reset, 2 * HITS),
    "file-500": (config_map, faults.refuse(500), 3),
    "status-409": (status, faults.refuse(409), 3),
    "token-500": (tokens, faults.refuse(500), 2),
}
SHORT: Final = ("reads-410", "writes-409", "writes-lost", "everything-reset")
"""In `make test`; the rest is `long`."""


def other(stage: Stage) -> Triples:
    """A schedule that is not in use."""
    return THIRD if stage.stored_triples() == SECOND else SECOND


def marked() -> list[object]:
    """All cases, most of them `long`."""
    return [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in CASES]


@pytest.mark.parametrize("name", marked())
def test_a_schedule_changed_during_the_fault_arrives(healthy: Stage, name: str) -> None:
    pick, fault, hits = CASES[name]
    schedule, since, before = other(healthy), len(healthy.proxy.calls), identity(healthy)
    if name == "token-500":
        healthy.operators[0].kill()  # the token at hand would do for minutes
        healthy.operators[0].start()
    rule = healthy.proxy.on(pick, fault)
    healthy.schedule(schedule)
    wait_for(f"{hits} requests to meet the fault", lambda: len(rule.hit), lambda n: n >= hits, SECONDS, 0.02)
    healthy.proxy.lift()
    healthy.wait_settled(schedule, 2)
    nothing_is_destroyed(healthy, since, before)
    does_not_hammer(rule.hit)


def test_retry_after_is_honoured(healthy: Stage) -> None:
    """By each of its requests, whatever wakes it meanwhile: the whole operator shares one allowance."""
    schedule, since, before = other(healthy), len(healthy.proxy.calls), identity(healthy)
    rule = healthy.proxy.on(own, faults.refuse(429, retry_after=PAUSE))
    healthy.schedule(schedule)
    first = wait_for("a refused request", lambda: list(rule.hit), bool, SECONDS, 0.02)[0]
    wait_for("the middle of the pause", time.monotonic, lambda now: now - first.at > PAUSE * 0.4, SECONDS, 0.05)
    healthy.kubectl("label", "dsddeployment", "demo", f"wake={schedule[0][2]}", "--overwrite")

    def gaps() -> list[float]:
        """Between the rounds of requests; those of one moment count once, for they are on their way together."""
        found = (later.at - earlier.at for earlier, later in pairwise(rule.hit))
        return [gap for gap in found if gap > PAUSE * 0.25]

    wait_for("three rounds of requests", gaps, lambda found: len(found) >= 2, SECONDS, 0.05)
    healthy.proxy.lift()
    assert all(gap > PAUSE * 0.95 for gap in gaps()), gaps()
    healthy.wait_settled(schedule, 2)
    nothing_is_destroyed(healthy, since, before)


@pytest.mark.long
@pytest.mark.parametrize("pick", [reads, writes, lambda _: True], ids=["reads", "writes", "everything"])
def test_requests_without_an_answer(healthy: Stage, pick: Pick) -> None:
    """A firewall that drops packets: each request takes its whole timeout."""
    schedule, since, before = other(healthy), len(healthy.proxy.calls), identity(healthy)
    rule = healthy.proxy.on(pick, faults.hang)
    healthy.schedule(schedule)
    wait_for("requests to hang", lambda: len(rule.hit), lambda n: n >= 3, SECONDS, 0.02)
    wait_for("one to be given up", lambda: healthy.operators[0].metric("dsd_operator_api_requests_total", code="0"),
             bool, SECONDS)  # fmt: skip
    healthy.proxy.lift()
    healthy.wait_settled(schedule, 2)
    nothing_is_destroyed(healthy, since, before)
    does_not_hammer(rule.hit)


def identity(stage: Stage) -> tuple[object, ...]:
    """What a fault may not change."""
    deployment = stage.wait_child("Deployment")
    pods = sorted(pod["metadata"]["uid"] for pod in stage.pods())
    return deployment["metadata"]["uid"], deployment["metadata"]["generation"], pods


def nothing_is_destroyed(stage: Stage, since: int, before: tuple[object, ...]) -> None:
    """No DELETE, no roll-out, no pod replaced, and no value that came back."""
    trail = stage.trail(since)
    assert trail.deleted == ()
    assert trail.remade() == []
    assert trail.goes_back() == []
    assert identity(stage) == before
    assert stage.operators[0].running


def does_not_hammer(hits: list[Call]) -> None:
    """The same request comes again only after a pause that grows: half a second, one, two."""
    took = hits[-1].at - hits[0].at
    for request, count in Counter((call.framework, call.verb, call.path, call.watch) for call in hits).items():
        assert count <= 4 + 2 * took, (request, count, took)


def test_the_cases_are_of_every_kind() -> None:
    """A short cut that lost its cases would go unnoticed."""
    assert set(SHORT) < CASES.keys()
    assert FIRST != SECOND != THIRD
