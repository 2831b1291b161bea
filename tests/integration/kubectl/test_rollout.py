"""`kubectl dsd rollout` on a real API server: back to an earlier envelope, and nothing else with it."""

import re

import pytest

from tests.integration.kubectl.tool import Dsd
from tests.integration.world import NAME, SECOND, World, ranges
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


def image(world: World) -> str:
    (container,) = world.wait_child("Deployment")["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def wait_revision(dsd: Dsd, number: int) -> None:
    wait_for(
        f"revision {number}",
        lambda: dsd.json("rollout", "history", NAME)["revisions"],
        lambda found: bool(found) and found[-1]["revision"] == number and found[-1]["current"],
        20,
        0.1,
    )


def test_undo_puts_the_earlier_envelope_back_and_keeps_the_rest(world: World, dsd: Dsd) -> None:
    world.operator(RUNTIME_IMAGE="registry.example/runtime:old")
    world.create(engine={"maxNumSeqs": 8})
    world.wait_child("Deployment")
    world.operators[-1].terminate()
    world.operator(RUNTIME_IMAGE="registry.example/runtime:new")
    world.patch(engine={"maxNumSeqs": 16, "dtype": "float32"}, replicas=2)
    wait_revision(dsd, 2)
    world.schedule(SECOND)
    assert image(world).endswith(":new")

    table = dsd("rollout", "history", NAME).stdout
    assert "engine.maxNumSeqs: 8 -> 16" in table
    assert "(current)" in table
    assert "maxNumSeqs: 8" in dsd("rollout", "history", NAME, "--revision", "1").stdout
    generation = world.resource()["metadata"]["generation"]
    assert "nothing was changed" in dsd("rollout", "undo", NAME, "--dry-run=server").stdout
    assert world.resource()["metadata"]["generation"] == generation

    assert "goes back to revision 1" in dsd("rollout", "undo", NAME).stdout
    spec = world.resource()["spec"]
    assert spec["engine"]["maxNumSeqs"] == 8
    assert "dtype" not in spec["engine"]
    assert (spec["replicas"], spec["schedule"]) == (2, ranges(SECOND))
    wait_revision(dsd, 3)
    wait_for("the pods of then", lambda: image(world), lambda found: found.endswith(":old"), 20, 0.1)
    assert "asks for revision 3 already" in dsd("rollout", "undo", NAME, "--to-revision", "3").stdout


def test_a_token_that_was_moved_to_a_secret_is_not_told_and_its_revision_can_go(world: World, dsd: Dsd) -> None:
    """With the commands of docs/how-to/rollouts.md."""
    token = "hf_aVeryLongTokenOfSomebody"
    world.operator()
    world.create(engine={"env": [{"name": "HF_TOKEN", "value": token}], "extraArgs": [f"--api-key={token}"]})
    wait_revision(dsd, 1)
    world.patch(engine={"env": None, "extraArgs": ["--seed=1"]})
    wait_revision(dsd, 2)
    table = dsd("rollout", "history", NAME).stdout
    assert "engine.env[HF_TOKEN]: removed" in " ".join(table.split())
    assert token not in table
    assert token not in dsd("rollout", "undo", NAME, "--dry-run=server").stdout

    before = world.wait_child("Deployment")["metadata"]["generation"]
    ours = '{range .items[?(@.metadata.ownerReferences[0].kind=="DSDDeployment")]}{.metadata.name}{"\\n"}{end}'
    label = f"dsd-operator.io/deployment={NAME}"
    found = world.kubectl(
        "get", "controllerrevisions", "-l", label, "--sort-by=.revision", "-o", f"jsonpath={ours}"
    ).split()
    assert found == sorted(found, reverse=True), "names alone would have them in another order"
    assert len(found) == 2
    world.kubectl("delete", "controllerrevision", *found[:-1])
    assert token not in world.kubectl("get", "controllerrevisions", "-o", "json")
    assert world.wait_child("Deployment")["metadata"]["generation"] == before
    assert [r["revision"] for r in dsd.json("rollout", "history", NAME)["revisions"]] == [2]


def test_a_schedule_that_does_not_fit_is_refused_with_what_to_do(world: World, dsd: Dsd) -> None:
    world.operator()
    world.create()
    wait_revision(dsd, 1)
    drafter = {**world.resource()["spec"]["drafter"], "numSpeculativeTokens": 6}
    world.patch(drafter=drafter, schedule=ranges([(1, 8, 6)]))
    wait_revision(dsd, 2)
    before = world.resource()["metadata"]["generation"]
    said = dsd("rollout", "undo", NAME, code=1).stderr
    assert "K=6 is above the maximum of 3" in said
    assert "kubectl dsd schedule set" in said
    assert world.resource()["metadata"]["generation"] == before


def test_restart_makes_a_revision_and_status_waits_for_it(world: World, dsd: Dsd) -> None:
    world.operator()
    world.create()
    wait_revision(dsd, 1)
    assert "is restarted" in dsd("rollout", "restart", NAME).stdout
    wait_revision(dsd, 2)
    at = world.resource()["spec"]["rollout"]["restartedAt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", at)
    # The revision is stored first, the Deployment follows.
    wait_for(
        "the pods to be made anew",
        lambda: world.wait_child("Deployment")["spec"]["template"]["metadata"].get("annotations") or {},
        lambda found: found.get("dsd-operator.io/restarted-at") == at,
        20,
        0.1,
    )
    # No kubelet starts the pods here.
    assert "has not ended within 1 s" in dsd("rollout", "status", NAME, "--timeout", "1", code=1).stderr
    world.patch(replicas=0)
    assert "rolled out" in dsd("rollout", "status", NAME, "--timeout", "60").stdout


def test_a_roll_out_that_cannot_go_on_is_an_error(world: World, dsd: Dsd) -> None:
    world.operator()
    world.create(engine={"extraArgs": ["--no-such-option"]})
    done = dsd("rollout", "status", NAME, "--timeout", "60", code=1)
    assert "InvalidSpec" in done.stdout
    assert "does not go on" in done.stderr
    assert "no revisions" in dsd("rollout", "history", NAME).stdout
    assert "no other revision" in dsd("rollout", "undo", NAME, code=1).stderr
