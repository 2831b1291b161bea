"""Reading the history of a resource's pods: what follows where it cannot be read, or where its newest part is gone."""

from copy import deepcopy
from typing import Any

import pytest

from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.cluster.errors import ApiError, Forbidden, Retry
from dsd_operator.reconcile import history
from dsd_operator.reconcile.apply import Report, apply_one
from dsd_operator.reconcile.memory import Memory
from dsd_operator.render.history import KIND, LIMIT
from dsd_operator.render.history import name_of as history_name
from dsd_operator.render.labels import joined, labels
from dsd_operator.render.names import names_for
from dsd_operator.status.blockers import beside_blocker, spec_blocker
from dsd_operator.status.observed import Outcome
from dsd_operator.status.reasons import Reason
from tests.unit.control.test_apply import FakeServer, Json
from tests.unit.resources import CONTEXT, resource

LABELS = labels(names_for("demo"))


class Unreadable:
    """A client that cannot list."""

    async def list(self, *_: Any) -> list[Any]:
        raise Retry(503, "busy", 7.0)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({}, "Deployment"), ({"engine.nodes": 2, "engine.tensorParallelSize": 2}, "LeaderWorkerSet")],
)
async def test_a_workload_that_is_left_as_it_is_is_not_rolled_out(changes: dict[str, Any], kind: str) -> None:
    client: Any = Unreadable()
    found = await history.planned(client, resource(changes), {}, CONTEXT, Memory("u"))
    assert kind not in {manifest["kind"] for manifest in found.manifests}
    assert {"ConfigMap", "Service"} <= {manifest["kind"] for manifest in found.manifests}
    (failure,) = found.report.failures
    assert (failure.kind, found.report.retry, found.report.delay) == (kind, True, 7.0)
    outcome = Outcome(None, None, failures=found.report.failures)
    blocker = spec_blocker(outcome)
    assert blocker is not None
    assert blocker.reason is Reason.APPLY_FAILED
    assert "the history of the pods cannot be read: busy" in blocker.message
    assert beside_blocker(outcome) is None


class Shared:
    """A client that lists what stands beside ours: controllers copy labels from pods to revisions of their own."""

    def __init__(self, **metadata: Any) -> None:
        name = history_name(resource(), envelope_hash(envelope(resource().spec)))
        readable: dict[str, Any] = {"envelope": {}, "pods": {"template": {"spec": {}}}}
        self.revisions = [
            {"metadata": {"name": name, "labels": LABELS, **metadata}, "data": readable, "revision": number}
            for number in range(100, 100 + 2 * LIMIT)
        ]

    async def list(self, *_: Any) -> list[Any]:
        return self.revisions


@pytest.mark.parametrize("owned", [True, False], ids=["another-controller's", "without-our-data"])
async def test_what_others_keep_is_not_used_nor_counted_nor_deleted(owned: bool) -> None:
    owner = {"kind": "LeaderWorkerSet", "apiVersion": "leaderworkerset.x-k8s.io/v1", "name": "demo", "uid": "7"}
    client: Any = Shared(**({"ownerReferences": [{**owner, "controller": True}]} if owned else {}))
    if not owned:
        for revision in client.revisions:
            revision["data"] = {"spec": {}}
    memory = Memory("u")
    found = {m["kind"]: m for m in (await history.planned(client, resource(), {}, CONTEXT, memory)).manifests}
    assert found[KIND]["revision"] == 1
    assert found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert memory.expired == ()


class Server(FakeServer):
    """Lists its ControllerRevision to whoever asks for its labels."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.silent: ApiError | None = None

    async def list(self, _: object, namespace: str, selector: str) -> list[Json]:
        self.looks += 1
        if self.silent is not None:
            raise self.silent
        found = self.live.get(KIND)
        labels = found["metadata"]["labels"] if found is not None else {}
        fits = set(selector.split(",")) <= set(joined(labels).split(","))
        return [found] if found is not None and namespace == "team-a" and fits else []


INTERVAL = 100.0


class History:
    """One resource whose revision is stored; each call is a pass."""

    def __init__(self) -> None:
        self.server, self.memory = Server(), Memory("uid")
        self.client: Any = self.server

    async def run(self, now: float) -> Report:
        """What a pass does with the history at this time."""
        planned = await history.planned(self.client, resource(), self.server.live, CONTEXT, self.memory)
        report = Report()
        for manifest in planned.manifests:
            if manifest["kind"] == KIND:
                report += await apply_one(self.client, manifest, None, self.memory)
        return report + await history.keep(self.client, self.memory, now, INTERVAL)


@pytest.fixture
async def kept() -> History:
    made = History()
    await made.run(0)
    await made.run(0)
    made.server.looks = 0
    return made


async def test_the_revision_in_use_is_looked_for_in_intervals_and_left_alone(kept: History) -> None:
    for now in (1, 99, 100, 101, 199, 200):
        assert await kept.run(now) == Report()
    assert (kept.server.looks, kept.server.applied) == (2, [KIND])


async def test_one_that_is_gone_is_written_as_it_was(kept: History) -> None:
    before = kept.server.live.pop(KIND)
    await kept.run(99)
    assert KIND not in kept.server.live
    (again,) = (await kept.run(100)).applied
    assert {**again, "metadata": None} == {**before, "metadata": None}
    assert again["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert await kept.run(101) == Report()
    assert kept.server.applied == [KIND, KIND]


def _leave(revision: Json) -> None:
    revision["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"


def _give_away(revision: Json) -> None:
    del revision["metadata"]["ownerReferences"]


def _take_label(revision: Json) -> None:
    revision["metadata"]["labels"].popitem()


def _renumber(revision: Json) -> None:
    revision["revision"] = 7


@pytest.mark.parametrize("change", [_leave, _give_away, _take_label, _renumber])
async def test_one_that_somebody_changed_is_set_back(kept: History, change: Any) -> None:
    before = deepcopy(kept.server.live[KIND])
    change(kept.server.live[KIND])
    await kept.run(100)
    assert {**kept.server.live[KIND], "metadata": None} == {**before, "metadata": None}
    for part in ("labels", "ownerReferences"):
        assert kept.server.live[KIND]["metadata"][part] == before["metadata"][part]


async def test_one_that_cannot_be_written_is_tried_again_in_every_pass(kept: History) -> None:
    del kept.server.live[KIND]
    kept.server.refuse[KIND] = Forbidden(403, "quota")
    for now in (100, 101):
        report = await kept.run(now)
        assert ([failure.kind for failure in report.failures], report.retry) == ([KIND], True)
    kept.server.refuse.clear()
    await kept.run(102)
    assert KIND in kept.server.live


async def test_one_that_cannot_be_looked_for_is_no_fault(kept: History) -> None:
    kept.server.silent = Retry(503, "busy")
    assert await kept.run(100) == Report()
    assert kept.server.applied == [KIND]
