"""The children: made, kept, given back when somebody takes them away, and shared with those who add to them."""

import json
from datetime import UTC, datetime

import pytest

from dsd_operator.api import parse
from dsd_operator.render.context import RenderContext
from dsd_operator.render.workload import workload
from dsd_runtime.protocol import Revision
from tests.integration.world import CHILDREN, FIRST, NAME, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


def test_children_are_made_and_owned(world: World) -> None:
    world.operator()
    uid = world.create()["metadata"]["uid"]
    for kind, child in world.wait_children().items():
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (uid, True), kind
        assert "blockOwnerDeletion" not in owner
        managers = {(m["manager"], m["operation"]) for m in child["metadata"]["managedFields"]}
        assert ("dsd-operator", "Apply") in managers, kind


def test_the_framework_leaves_no_trace(world: World) -> None:
    world.operator()
    world.create()
    children = world.wait_children()
    world.wait_condition("Ready", status="False")
    for thing in (world.resource(), *children.values(), *world.wait_pods(1)):
        text = json.dumps(thing["metadata"])
        assert "finalizers" not in thing["metadata"]
        assert "kopf" not in text
        assert "last-handled" not in text


@pytest.mark.parametrize("kind", CHILDREN)
def test_deleted_child_comes_back(world: World, kind: str) -> None:
    world.operator()
    world.create()
    before = world.wait_children()
    revision = world.wait_stored(FIRST).revision
    world.kube.delete(kind, world.namespace, NAME)
    after = world.wait_child(kind, other_than=before[kind]["metadata"]["uid"])
    assert after["metadata"]["ownerReferences"] == before[kind]["metadata"]["ownerReferences"]
    assert world.wait_stored(FIRST).revision == revision, "the schedule did not change, so its revision may not"


def test_what_others_change_is_restored_and_what_they_add_stays(world: World) -> None:
    operator = world.operator()
    world.create()
    world.wait_children()
    world.wait_pods(1)
    put_in = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "today"}}}}}
    world.kube.patch("Deployment", world.namespace, NAME, put_in)
    secrets = {"imagePullSecrets": [{"name": "demo-dockercfg-x"}], "secrets": [{"name": "demo-token-x"}]}
    world.kube.patch("ServiceAccount", world.namespace, NAME, secrets)

    world.kube.scale(world.namespace, NAME, 3)
    world.kube.patch("ConfigMap", world.namespace, NAME, {"data": {"config.yaml": "ranges: []"}})
    world.kube.patch("Service", world.namespace, NAME, {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}})

    world.wait_stored(FIRST)
    world.wait_pods(1)
    settled = operator.writes()
    deployment, service = world.wait_child("Deployment"), world.wait_child("Service")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] == "today"
    assert service["metadata"]["labels"]["app.kubernetes.io/name"] == "dsd-engine"
    account = world.wait_child("ServiceAccount")
    assert account["imagePullSecrets"] == secrets["imagePullSecrets"]
    assert account["secrets"] == secrets["secrets"]
    assert settled > 0


def test_a_request_of_its_own_that_is_carried_out_late_is_put_right(world: World) -> None:
    """One that the operator gave up: the fields are its own as before, and who owns what has not changed."""
    world.operator()
    world.create()
    made = world.wait_child("Deployment")
    (applied,) = (e["time"] for e in made["metadata"]["managedFields"] if e["manager"] == "dsd-operator")
    image = made["spec"]["template"]["spec"]["containers"][0]["image"]
    late = workload(parse(world.resource()), RenderContext(image, Revision(owner="o", number=1)))
    late["spec"]["minReadySeconds"] += 1
    # The API server keeps the time to the second.
    wait_for("the next second", lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", lambda now: now > applied, 20, 0.05)
    as_the_operator = ("apply", "--server-side", "--field-manager=dsd-operator", "-f", "-")
    world.kubectl(*as_the_operator, given=json.dumps(late))

    def seconds() -> int:
        return int(world.wait_child("Deployment")["spec"]["minReadySeconds"])

    wait_for("the operator's value", seconds, lambda found: found == made["spec"]["minReadySeconds"], 20, 0.05)
    assert world.wait_child("Deployment")["metadata"]["generation"] >= made["metadata"]["generation"] + 2


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("ConfigMap", {"data": {"theirs": "yes"}}),
        ("ServiceAccount", {"metadata": {"annotations": {"cloud.example/role": "admin"}}}),
    ],
)
def test_an_object_of_somebody_else_is_left_alone_until_it_goes(world: World, kind: str, content: Json) -> None:
    named = {"name": NAME, "namespace": world.namespace, **content.get("metadata", {})}
    theirs = world.kube.apply({"apiVersion": "v1", "kind": kind, **content, "metadata": named})
    world.operator()
    world.create()
    condition = world.wait_condition("Ready", status="False", reason="ForeignObject")
    assert condition["message"].startswith(f"{kind} {NAME}: a {kind} of this name exists and is not ours")
    assert world.child(kind) == theirs
    for other in {"ServiceAccount", "ConfigMap", "Service"} - {kind}:
        world.wait_child(other)
    assert world.child("Deployment") is None, "its pods would mount what is not ours, or run as it"
    world.wait_event("ForeignObject")

    world.kube.delete(kind, world.namespace, NAME)
    world.wait_stored(FIRST)
    world.wait_child("Deployment")
    world.wait_status("another reason", lambda s: "ForeignObject" not in {c["reason"] for c in s["conditions"]})


def test_a_child_that_is_refused_holds_up_no_other(world: World) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    world.apply({**quota, "spec": {"hard": {"services": "0"}}})
    world.operator()
    world.create()
    for kind in ("ServiceAccount", "ConfigMap", "Deployment"):
        world.wait_child(kind)
    condition = world.wait_condition("Ready", status="False", reason="ApplyFailed")
    assert "exceeded quota" in condition["message"]

    world.kubectl("delete", "resourcequota", "none")
    world.wait_child("Service")
