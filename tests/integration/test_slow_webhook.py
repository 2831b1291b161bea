"""An admission webhook that takes its time holds up neither this schedule nor the next one, and one that takes its time
over what stands beside the pods nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.webhook import Webhook
from tests.integration.world import NAME, SECOND, THIRD, World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


@contextmanager
def in_force(world: World, directory: Path, plural: str, group: str, *create: str) -> Iterator[Webhook]:
    """A webhook for a kind in the test's namespace; `create` is how kubectl makes one, for a probe."""
    with Webhook(directory / "webhook") as made:
        configuration = made.configuration(world.namespace, plural, group=group)
        world.apply(configuration)

        def is_asked() -> bool:
            world.kubectl("create", *create, "--dry-run=server")
            return made.calls > 0

        wait_for("the webhook to be asked", is_asked, bool, 30, 0.1)
        yield made
        world.kubectl("delete", "validatingwebhookconfiguration", configuration["metadata"]["name"])


@pytest.fixture
def webhook(world: World, tmp_path: Path) -> Iterator[Webhook]:
    """Over ConfigMaps."""
    with in_force(world, tmp_path, "configmaps", "", "configmap", "probe") as made:
        yield made


@pytest.fixture
def budgets(world: World, tmp_path: Path) -> Iterator[Webhook]:
    """Over PodDisruptionBudgets."""
    create = ("poddisruptionbudget", "probe", "--selector=app=probe", "--min-available=1")
    with in_force(world, tmp_path, "poddisruptionbudgets", "policy", *create) as made:
        yield made


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


def test_what_serves_waits_for_nothing_beside_it(world: World, budgets: Webhook) -> None:
    budgets.gate.clear()
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    condition = world.wait_condition("Ready", status="False", reason="ApplyFailed")
    assert f"PodDisruptionBudget {NAME}" in condition["message"]
    assert "an admission webhook may be slow" in condition["message"]
    world.wait_condition("Progressing", status="False", reason="RolledOut")
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    world.patch(replicas=2)
    world.wait_pods(2)
    assert world.child("PodDisruptionBudget") is None, "the webhook still holds it"

    budgets.gate.set()
    world.wait_child("PodDisruptionBudget")
    world.wait_status("no more failures", lambda s: "ApplyFailed" not in {c["reason"] for c in s["conditions"]})
