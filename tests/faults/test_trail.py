"""The oracles complain: about a child made twice, a value that came back, a number that fell, a field that is left."""

import json
from dataclasses import replace
from typing import Any

from dsd_operator.render.config_map import config_map
from dsd_runtime.protocol import Revision
from tests.faults import final_state, trail
from tests.faults.calls import Call
from tests.unit.resources import CONTEXT, manifests, resource

BASE = "/api/v1/namespaces/team-a"
APPS = "/apis/apps/v1/namespaces/team-a"
LWS = "leaderworkerset.x-k8s.io/v1"
OWN = "/apis/dsd-operator.io/v1alpha1/namespaces/team-a/dsddeployments/demo"


def write(path: str, answer: dict[str, Any], verb: str = "PATCH") -> Call:
    """A write that was carried out."""
    meta = {**answer.get("metadata", {}), "uid": answer.get("metadata", {}).get("uid", "u")}
    return Call(0.0, verb, path, {}, reached=True, answer={**answer, "metadata": meta})


def file(number: int, k: int = 3) -> Call:
    """The ConfigMap with a revision of this number."""
    ranges = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": k}]
    context = replace(CONTEXT, revision=Revision(owner="o", number=number))
    return write(f"{BASE}/configmaps/demo", config_map(resource({"schedule": ranges}), context))


def workload(replicas: int = 2, image: str = "a", uid: str = "u") -> Call:
    """The Deployment."""
    made = manifests(resource({"replicas": replicas, "engine.image": image}))["Deployment"]
    return write(f"{APPS}/deployments/demo", {**made, "metadata": {**made["metadata"], "uid": uid}})


def groups(replicas: int) -> Call:
    """The LeaderWorkerSet."""
    made = manifests(resource({"replicas": replicas, "engine.nodes": 2, "engine.tensorParallelSize": 2}))
    return write(f"/apis/{LWS}/namespaces/team-a/leaderworkersets/demo", made["LeaderWorkerSet"])


def test_a_change_goes_forward() -> None:
    found = trail.of([file(1), file(1), file(2, k=1), workload(2), workload(3), workload(3, "b")])
    assert found.goes_back() == []
    assert found.remade() == []
    assert (len(found.schedules), found.revisions) == (2, (1, 2))
    assert found.replicas == {"deployments": (2, 3)}
    assert len(found.templates["deployments"]) == 2


def test_what_came_back_shows() -> None:
    assert trail.of([workload(3), workload(2), workload(3)]).goes_back() == ["replicas"]
    assert trail.of([workload(image=image) for image in "aba"]).goes_back() == ["templates"]
    assert trail.of([groups(1), workload(1), groups(2), workload(0)]).goes_back() == [], "each kind has its own course"
    assert trail.of([groups(1), workload(1), groups(2), workload(0), groups(1)]).goes_back() == ["replicas"]
    assert trail.of([file(1), file(2, k=1), file(3)]).goes_back() == ["schedules"]
    assert trail.of([file(2), file(1, k=1)]).goes_back() == ["revisions"]
    statuses = [write(f"{OWN}/status", {"status": {"observedGeneration": n}}) for n in (2, 1)]
    assert trail.of(statuses).goes_back() == ["generations"]


def test_what_was_made_twice_or_deleted_shows() -> None:
    assert trail.of([workload(uid="one"), workload(uid="two")]).remade() == ["deployments"]
    assert trail.of([write(f"{APPS}/deployments/demo", {}, "DELETE")]).deleted == ("deployments/demo",)


def test_what_never_reached_the_server_is_no_write() -> None:
    call = workload()
    call.reached = False
    assert trail.of([call]).uids == {}


def test_differences_name_their_places() -> None:
    wanted = manifests(resource())
    found = json.loads(json.dumps(wanted))
    assert final_state.differences(wanted, found) == []
    found["Deployment"]["spec"]["replicas"] = 7
    del found["Service"]
    (first, second) = final_state.differences(wanted, found)
    assert first.startswith("/Deployment/spec/replicas: wanted 1, found 7")
    assert second.startswith("/Service: wanted {")
