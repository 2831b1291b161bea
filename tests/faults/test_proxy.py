"""The proxy alone: what it does not disturb comes through, and the trail tells what happened."""

import pytest

from tests.faults.stage import Stage
from tests.integration.world import FIRST, SECOND

pytestmark = pytest.mark.integration


@pytest.mark.long
def test_what_is_not_disturbed_comes_through(stage: Stage) -> None:
    stage.operator()
    stage.create(replicas=2)
    stage.wait_settled(FIRST, 2)
    stage.schedule(SECOND)
    stage.wait_settled(SECOND, 2)
    stage.quiet()
    trail = stage.trail()
    assert (trail.deleted, trail.remade(), trail.goes_back()) == ((), [], [])
    assert len(trail.schedules) == len(trail.revisions) == 2
    assert trail.uids["deployments"] == (stage.wait_child("Deployment")["metadata"]["uid"],)
    assert stage.proxy.cut_watches() >= 6, "kopf watches the resources and five kinds of children at least"
