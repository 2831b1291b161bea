"""Events that never come: each one of a change is lost once, and what happened unseen is found out by the resync."""

import os
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.faults.calls import Call
from tests.faults.conftest import NewStage
from tests.faults.scenarios import PLAIN, REPLICAS, SCENARIOS, harmless, undisturbed
from tests.faults.stage import Stage
from tests.faults.streams import Event
from tests.faults.test_requests import identity
from tests.integration.world import FIRST, NAME, SECOND
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

RESYNC: Final = "2"
"""Seconds. Ten minutes by default: the API server does not lose events, but the road to it may."""

SECONDS: Final = 60.0
ONLY: Final = os.environ.get("DSD_FAULTS_ONLY", "")


@dataclass
class Lose:
    """Lets all events pass but the `number`-th; counts them."""

    number: int
    seen: list[str] = field(default_factory=list)

    def __call__(self, _call: Call, event: Event) -> bool:
        """Whether the event passes."""
        found = event["object"]
        self.seen.append(f"{event['type']} {found.get('kind')} {found['metadata'].get('name')}")
        return len(self.seen) != self.number


def nothing_about_resources(_call: Call, event: Event) -> bool:
    """Loses every event of a DSDDeployment."""
    return bool(event["object"].get("kind") != "DSDDeployment")


@pytest.fixture
def blind(stage: Stage) -> Stage:
    """A resource in use, of which the operator hears nothing more."""
    stage.operator(RESYNC_SECONDS=RESYNC)
    stage.create(FIRST, **{**PLAIN, "replicas": 3})
    stage.wait_settled(FIRST, 3)
    stage.proxy.streams.passes = nothing_about_resources
    return stage


def test_a_change_whose_event_was_lost(blind: Stage) -> None:
    """And after it replicas that went from 3 to 2 and back: nothing is to be done, and nothing is."""
    before = identity(blind)
    blind.schedule(SECOND)
    blind.wait_settled(SECOND, 3)
    blind.patch(replicas=2)
    generation = blind.patch(replicas=3)["metadata"]["generation"]
    blind.wait_status("the newest generation", lambda status: status.get("observedGeneration") == generation)
    blind.wait_settled(SECOND, 3)
    assert identity(blind) == before
    assert blind.trail().replicas == {"deployments": (3,)}
    assert blind.trail().deleted == ()


@pytest.mark.long
def test_a_resource_that_was_deleted_and_made_again_unseen(blind: Stage) -> None:
    """Another uid: the children belong to a resource that is no more, and the garbage collector is on its way."""
    old = blind.resource()["metadata"]["uid"]
    blind.kube.delete("DSDDeployment", blind.namespace, NAME)
    wait_for("the resource to be gone", lambda: blind.kube.get("DSDDeployment", blind.namespace, NAME),
             lambda found: found is None, SECONDS)  # fmt: skip
    new = blind.create(SECOND, **PLAIN)["metadata"]["uid"]
    assert new != old

    def owners() -> set[str]:
        return {child["metadata"]["ownerReferences"][0]["uid"] for child in blind.wait_children().values()}

    wait_for("the children to be the new one's", owners, lambda found: found == {new}, SECONDS)
    blind.wait_settled(SECOND, REPLICAS)


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in ("create", "schedule", "envelope", "options-off") if ONLY in ("", n)])
@pytest.mark.usefixtures("monitored")
def test_each_event_is_lost_once(new_stage: NewStage, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The campaign: whatever is lost, the end is that of a run that loses nothing."""
    scenario = SCENARIOS[name]
    wanted = undisturbed(new_stage(), scenario)
    number, events = 1, 1
    while number <= events:
        stage = new_stage()
        stage.operator(RESYNC_SECONDS=RESYNC)
        since, before = stage.prepare(scenario.before)
        lose = Lose(number)
        stage.proxy.streams.passes = lose
        scenario.act(stage)
        stage.wait_final(wanted.final)
        harmless(scenario, wanted.like(stage, since, before), wanted)
        events = max(events, len(lose.seen)) if number == 1 else events
        with capsys.disabled():
            print(f"{name}: lost event {number} of {events}: {lose.seen[number - 1 : number]}", flush=True)
        stage.operators[0].kill()
        number += 1
    assert events >= 2, "the change itself, and the status"
