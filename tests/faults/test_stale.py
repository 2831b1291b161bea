"""Old news: a restarted operator whose watches show it yesterday, and events that tell what is no longer so.

A pass decides by reads of its own that name no resourceVersion: the API server answers those as of now, or not at all
(docs/adr/0015-passes-read-what-is-now.md). So whatever a watch shows can only wake it.
"""

import pytest

from tests.faults.stage import Stage
from tests.faults.test_requests import identity, other
from tests.faults.test_watches import RESOURCES, tell
from tests.integration.world import FIRST, NAME, SECOND, THIRD
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS = 60.0


def test_a_restart_into_yesterday(healthy: Stage) -> None:
    """What was changed since then stays changed; what is changed now arrives when the watches are back."""
    operator = healthy.operators[0]
    early, schedule = healthy.version(), other(healthy)
    healthy.create(FIRST, name="gone", replicas=0)
    late = healthy.version()
    healthy.kube.delete("DSDDeployment", healthy.namespace, "gone")
    healthy.schedule(schedule)
    healthy.wait_settled(schedule, 2)
    before = identity(healthy)
    revisions = [engine.number() for engine in healthy.serve()]
    for version in (early, late):
        operator.kill()
        since = len(healthy.proxy.calls)
        healthy.proxy.fall_behind(version)
        operator.start()
        listed = [call for call in healthy.proxy.calls[since:] if call.framework and call.read]
        assert listed, "kopf has listed what was"
        trail = healthy.trail(since)
        assert trail.deleted == ()
        assert len(trail.schedules) <= 1, "the ConfigMap is applied once after a restart, as it is"
        assert trail.goes_back() == []
        assert healthy.stored_triples() == schedule
        assert [engine.triples() for engine in healthy.serve()] == [schedule] * 2
        assert [engine.number() for engine in healthy.serve()] == revisions
        assert identity(healthy) == before
        healthy.proxy.catch_up()
    newest = THIRD if schedule == SECOND else SECOND
    healthy.schedule(newest)
    healthy.wait_settled(newest, 2)


def test_events_about_the_past_change_nothing(healthy: Stage) -> None:
    """An old copy of the resource with another schedule, and its end, which never was."""
    old = healthy.resource()
    schedule = other(healthy)
    healthy.schedule(schedule)
    healthy.wait_settled(schedule, 2)
    healthy.quiet()
    before, versions, since = identity(healthy), healthy.versions(), len(healthy.proxy.calls)
    for kind in ("MODIFIED", "DELETED"):
        tell(healthy, {"type": kind, "object": old}, RESOURCES)
    reads = "two passes that the events woke"
    path = f"/apis/dsd-operator.io/v1alpha1/namespaces/{healthy.namespace}/dsddeployments/{NAME}"
    wait_for(reads, lambda: [c for c in healthy.proxy.calls[since:] if c.path == path], bool, SECONDS, 0.05)
    healthy.quiet()
    assert [str(call) for call in healthy.proxy.calls[since:] if call.write] == []
    assert healthy.versions() == versions
    assert identity(healthy) == before


def test_no_pass_asks_for_a_version(healthy: Stage) -> None:
    """With a resourceVersion, 0 above all, an API server may answer from a cache that is behind."""
    schedule = other(healthy)
    healthy.schedule(schedule)
    healthy.wait_settled(schedule, 2)
    own = [call for call in healthy.proxy.calls if call.read and not call.framework]
    assert len(own) > 20
    assert [str(call) for call in own if "resourceVersion" in call.query or "resourceVersionMatch" in call.query] == []
