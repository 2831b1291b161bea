"""What of the objects that a look found belongs to the resource: what descends from it, whatever the labels say."""

from typing import Any, Final

from dsd_operator.cluster.observe import Found
from dsd_operator.render.labels import labels, worker_labels
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata
from dsd_operator.status.pods import name_of
from tests.unit.resources import manifests, resource

ENGINE: Final = labels(names_for("demo"))
WORKER: Final = ENGINE | worker_labels(names_for("demo"))
GROUPS: Final = resource({"engine.nodes": 2, "engine.tensorParallelSize": 2})


def thing(name: str, owner: str, **metadata: Any) -> dict[str, Any]:
    """An object with this uid and controller."""
    return {
        "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner, "controller": True}], **metadata},
        "spec": {},
        "status": {},
    }


def test_pods_that_only_carry_our_labels_are_nobody_we_know() -> None:
    """They would be counted, and the operator would send them a token."""
    live = {"kind": "Deployment", "metadata": child_metadata(resource()) | {"uid": "ours"}, "spec": {}}
    pods = [thing("mine", "new", labels=ENGINE), thing("older", "old", labels=ENGINE)]
    strangers = [thing("stranger", "theirs", labels=ENGINE), thing("nobody's", "", labels=ENGINE)]
    sets = [thing("new", "ours"), thing("old", "ours"), thing("theirs", "somebody")]
    seen = Found({"Deployment": live}, sets, [*pods, *strangers]).of(resource()).observed
    assert [name_of(pod) for pod in seen.pods] == ["mine", "older"]
    assert seen.workers == ()


def test_so_it_is_with_groups() -> None:
    live = manifests(GROUPS)["LeaderWorkerSet"]
    live["metadata"]["uid"] = "group"
    meta = {"generation": 1, "labels": {}}
    sets = [thing("leaders", "group", **meta), thing("of-leader", "leader", **meta), thing("theirs", "x", **meta)]
    for each in sets:
        each["spec"] = {"template": {"metadata": {}}}
    pods = [thing("leader", "leaders", labels=ENGINE), thing("worker", "of-leader", labels=WORKER)]
    strangers = [thing("a", "theirs", labels=ENGINE), thing("b", "theirs", labels=WORKER)]
    seen = Found({"LeaderWorkerSet": live}, [], [*pods, *strangers], sets).of(GROUPS).observed
    assert ([name_of(p) for p in seen.pods], [name_of(p) for p in seen.workers]) == (["leader"], ["worker"])


def test_a_deployment_of_somebody_else_s_and_its_pods_are_not_ours() -> None:
    theirs = {"kind": "Deployment", "metadata": {"name": "demo", "uid": "theirs"}, "spec": {}}
    pod = thing("pod", "set", labels=ENGINE)
    seen = Found({"Deployment": theirs}, [thing("set", "theirs")], [pod]).of(resource()).observed
    assert (seen.workloads, seen.pods) == ((), ())
