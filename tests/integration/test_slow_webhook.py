"""An admission webhook that takes its time over the ConfigMap holds up neither this schedule nor the next one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.webhook import Webhook
from tests.integration.world import SECOND, THIRD, World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def webhook(world: World, tmp_path: Path) -> Iterator[Webhook]:
    """In force for the test's namespace."""
    with Webhook(tmp_path / "webhook") as made:
        configuration = made.configuration(world.namespace, "configmaps")
        world.apply(configuration)

        def in_force() -> bool:
            world.kubectl("create", "configmap", "probe", "--dry-run=server")
            return made.calls > 0

        wait_for("the webhook to be asked", in_force, bool, 30, 0.1)
        yield made
        world.kubectl("delete", "validatingwebhookconfiguration", configuration["metadata"]["name"])


def test_the_next_schedule_does_not_wait_for_it(world: World, webhook: Webhook) -> None:
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    stored = world.stored_triples()

    webhook.gate.clear()
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    condition = world.wait_condition("Ready", status="False", reason="ApplyFailed")
    assert "an admission webhook may be slow" in condition["message"]
    assert "ConfigMap" in condition["message"]
    world.schedule(THIRD)
    world.wait_schedule(applied=1)
    assert engine.triples() == THIRD
    assert world.stored_triples() == stored, "the webhook still holds the first of them"

    webhook.gate.set()
    world.wait_stored(THIRD)
    world.wait_status("no more failures", lambda s: "ApplyFailed" not in {c["reason"] for c in s["conditions"]})
