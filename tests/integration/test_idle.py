"""A pass that finds nothing to do writes nothing."""

import pytest

from tests.integration.operator_process import OperatorProcess
from tests.integration.world import World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

PASSES = 10

ODD_SPELLINGS = {
    "requests": {"cpu": "0.1", "memory": "1e9"},
    "limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 1},
}


def passes(operator: OperatorProcess) -> float:
    """Passes that succeeded so far."""
    return operator.metric("dsd_operator_reconcile_total", result="success")


def test_resyncs_write_nothing(world: World) -> None:
    operator = world.operator(RESYNC_SECONDS="0.3")
    world.create(replicas=2, resources=ODD_SPELLINGS)
    engines = world.engines(2)
    world.wait_schedule(applied=2)
    pushed = [len(engine.tokens) for engine in engines]

    def settled() -> bool:
        before = operator.writes()
        count = passes(operator)
        wait_for("two passes", lambda: passes(operator), lambda now: now >= count + 2, 20, 0.05)
        return operator.writes() == before

    wait_for("the writes to end", settled, bool, 20, 0.05)
    writes, versions, count = operator.writes(), world.versions(), passes(operator)
    wait_for(f"{PASSES} passes", lambda: passes(operator), lambda now: now >= count + PASSES, 30, 0.1)
    assert world.versions() == versions
    assert operator.writes() == writes
    assert [len(engine.tokens) for engine in engines] == pushed


def test_an_equal_amount_in_another_spelling_rolls_nothing(world: World) -> None:
    world.operator()
    world.create(resources=ODD_SPELLINGS)
    deployment = world.wait_child("Deployment")
    equal = {"requests": {"cpu": "100m", "memory": "1000M"}, "limits": {"cpu": 1, "memory": "1Gi"}}
    generation = world.patch(resources=equal)["metadata"]["generation"]
    world.wait_status("the new generation", lambda s: s.get("observedGeneration") == generation)
    assert world.wait_child("Deployment")["metadata"]["generation"] == deployment["metadata"]["generation"]
