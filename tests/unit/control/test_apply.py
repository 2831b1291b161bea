"""Applying children: only what needs it, each on its own."""

from copy import deepcopy
from typing import Any

import pytest

from dsd_operator.cluster.errors import ApiError, Forbidden, Invalid, Retry
from dsd_operator.cluster.resources import Resource
from dsd_operator.reconcile.apply import Report, soonest
from dsd_operator.reconcile.children import bring_needed, is_beside
from dsd_operator.reconcile.memory import Memory
from dsd_operator.render.extras import BY_KIND
from dsd_operator.render.plan import plan
from tests.unit.resources import CONTEXT, resource

Json = dict[str, Any]


class FakeServer:
    """Stores what is applied, as an API server does: with a uid and our entry in managedFields."""

    def __init__(self) -> None:
        self.live: dict[str, Json] = {}
        self.applied: list[str] = []
        self.refuse: dict[str, ApiError] = {}
        self.unreadable: dict[str, ApiError] = {}

    async def get(self, resource: Resource, *_: Any) -> Json | None:
        if resource.kind in self.unreadable:
            raise self.unreadable[resource.kind]
        return self.live.get(resource.kind)

    async def apply(self, manifest: Json) -> Json:
        kind = manifest["kind"]
        self.applied.append(kind)
        if kind in self.refuse:
            raise self.refuse[kind]
        stored = deepcopy(manifest)
        entry = {"manager": "dsd-operator", "operation": "Apply", "time": "t1", "fieldsV1": {"f:all": {}}}
        old = self.live.get(kind, {}).get("metadata", {})
        stored["metadata"] |= {"uid": old.get("uid", f"uid-{len(self.applied)}"), "managedFields": [entry]}
        self.live[kind] = stored
        return stored


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def memory() -> Memory:
    return Memory("uid")


async def run(server: FakeServer, memory: Memory, **changes: Any) -> Report:
    manifests = [m for m in plan(resource(changes), CONTEXT) if not is_beside(m)]
    return await bring_needed(server, manifests, dict(server.live), memory)  # type: ignore[arg-type]


def always(changes: Any) -> list[Json]:
    """The children that every resource has; what else there may be `optional` brings, and its tests are elsewhere."""
    return [manifest for manifest in plan(resource(changes), CONTEXT) if manifest["kind"] not in BY_KIND]


ALL = ["ServiceAccount", "ConfigMap", "Service", "Deployment"]


async def test_the_second_pass_writes_nothing(server: FakeServer, memory: Memory) -> None:
    assert [o["kind"] for o in (await run(server, memory)).applied] == ALL
    assert await run(server, memory) == Report()
    assert server.applied == ALL


async def test_after_a_restart_everything_is_applied_once(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    fresh = Memory("uid")
    await run(server, fresh)
    await run(server, fresh)
    assert server.applied == ALL * 2


async def test_only_the_child_that_changes_is_applied(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    await run(server, memory, replicas=2)
    assert server.applied == [*ALL, "Deployment"]


async def test_a_field_that_somebody_took_comes_back(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    server.live["Service"]["metadata"]["managedFields"][0]["fieldsV1"] = {}
    await run(server, memory)
    assert server.applied == [*ALL, "Service"]


async def test_a_late_write_of_our_own_is_put_right(server: FakeServer, memory: Memory) -> None:
    """A request that was given up, or a backup: the fields are ours as before, their values are not the latest."""
    await run(server, memory)
    server.live["Deployment"]["metadata"]["managedFields"][0]["time"] = "t2"
    await run(server, memory)
    await run(server, memory)
    assert server.applied == [*ALL, "Deployment"]


async def test_what_others_add_is_none_of_our_business(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    deployment = server.live["Deployment"]
    deployment["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now"}
    deployment["metadata"]["managedFields"].append({"manager": "kubectl", "operation": "Update", "fieldsV1": {}})
    deployment["metadata"]["resourceVersion"] = "99"
    await run(server, memory)
    assert server.applied == ALL


async def test_an_object_that_was_replaced_is_applied(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    server.live["ConfigMap"]["metadata"]["uid"] = "another"
    await run(server, memory)
    assert server.applied == [*ALL, "ConfigMap"]


@pytest.mark.parametrize(
    ("error", "retry", "delay"),
    [(Invalid(422, "no"), False, 0.0), (Forbidden(403, "no"), True, 0.0), (Retry(429, "no", 9.0), True, 9.0)],
)
async def test_one_that_is_refused_holds_up_no_other(
    server: FakeServer, memory: Memory, error: ApiError, retry: bool, delay: float
) -> None:
    server.refuse["ConfigMap"] = error
    report = await run(server, memory)
    assert [o["kind"] for o in report.applied] == ["ServiceAccount", "Service", "Deployment"]
    (failure,) = report.failures
    assert (failure.kind, failure.name, failure.message, failure.foreign) == ("ConfigMap", "demo", "no", False)
    assert (report.retry, report.delay) == (retry, delay)


async def test_a_foreign_object_is_left_alone(server: FakeServer, memory: Memory) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "x", "controller": True}
    server.live["Service"] = {"kind": "Service", "metadata": {"name": "demo", "uid": "f", "ownerReferences": [owner]}}
    report = await run(server, memory)
    assert "Service" not in server.applied
    (failure,) = report.failures
    assert failure.foreign
    assert "belongs to Deployment web" in failure.message
    assert report.retry


async def test_an_orphan_that_may_not_be_taken_over_comes_with_a_way_out(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    del server.live["ConfigMap"]["metadata"]["ownerReferences"]
    server.refuse["ConfigMap"] = Forbidden(403, "cannot set an ownerRef on a resource you can't delete")
    (failure,) = (await run(server, Memory("new"))).failures
    assert not failure.foreign
    assert failure.message.endswith("delete it, and it is made anew")


async def test_a_child_on_its_way_out_is_waited_for(server: FakeServer, memory: Memory) -> None:
    await run(server, memory)
    server.live["Deployment"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    report = await run(server, memory)
    assert server.applied == ALL
    assert not report.failures[0].foreign


CACHE: Json = {"cache": {"size": "1Gi"}}


def stranger(kind: str) -> Json:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "3Gi"}}}
    return {"kind": kind, "metadata": {"name": "demo", "uid": "f"}, "spec": spec}


GROUPS: Json = {"engine.nodes": 2, "engine.tensorParallelSize": 2}


@pytest.mark.parametrize(("changes", "workload"), [({}, "Deployment"), (GROUPS, "LeaderWorkerSet")])
@pytest.mark.parametrize("kind", ["ServiceAccount", "ConfigMap", "PersistentVolumeClaim"])
async def test_no_pod_mounts_what_is_a_stranger_s_or_runs_as_one(
    server: FakeServer, memory: Memory, kind: str, changes: Json, workload: str
) -> None:
    server.live[kind] = stranger(kind)
    report = await run(server, memory, **CACHE, **changes)
    assert {"ServiceAccount", "ConfigMap", "Service"} - {kind} <= set(server.applied)
    assert not {kind, workload} & set(server.applied)
    (failure,) = report.failures
    assert (failure.kind, failure.foreign, failure.in_use) == (kind, True, False)
    del server.live[kind]
    assert not (await run(server, memory, **CACHE, **changes)).failures
    assert server.applied[-2:] == [kind, workload]


@pytest.mark.parametrize(("changes", "workload"), [({}, "Deployment"), (GROUPS, "LeaderWorkerSet")])
async def test_an_account_that_no_pod_runs_as_holds_up_nothing(
    server: FakeServer, memory: Memory, changes: Json, workload: str
) -> None:
    server.live["ServiceAccount"] = stranger("ServiceAccount")
    another = {"podTemplate": {"spec": {"serviceAccountName": "theirs"}}}
    report = await run(server, memory, **another, **changes)
    assert [failure.kind for failure in report.failures] == ["ServiceAccount"]
    assert workload in server.applied


async def test_a_workload_that_is_there_stays_as_it_is_then(server: FakeServer, memory: Memory) -> None:
    await run(server, memory, **CACHE)
    server.live["PersistentVolumeClaim"] = stranger("PersistentVolumeClaim")
    await run(server, memory, **CACHE, replicas=0)
    assert server.live["Deployment"]["spec"]["replicas"] == 1


async def test_nor_one_of_which_nobody_knows_whose_it_is(server: FakeServer, memory: Memory) -> None:
    server.unreadable["PersistentVolumeClaim"] = Retry(503, "busy")
    report = await run(server, memory, **CACHE)
    assert report.retry
    assert "Deployment" not in server.applied


async def test_pods_wait_for_a_claim_that_is_refused_by_themselves(server: FakeServer, memory: Memory) -> None:
    server.refuse["PersistentVolumeClaim"] = Forbidden(403, "exceeded quota")
    report = await run(server, memory, **CACHE)
    assert [o["kind"] for o in report.applied] == ALL
    assert [f.kind for f in report.failures] == ["PersistentVolumeClaim"]


def test_the_first_wish_to_look_again_counts() -> None:
    assert (Report(again=5.0) + Report(again=15.0)).again == 5.0
    assert (Report(again=15.0) + Report()).again == 15.0
    assert soonest(0.0, 15.0, 10.0) == 10.0
    assert soonest(0.0, 0.0) == 0.0
