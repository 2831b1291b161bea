"""Engines that move from one kind of workload to the other: by how much each step may let go."""

from collections.abc import Mapping
from typing import Any

import pytest

from dsd_operator.cluster.errors import ApiError, Conflict, Forbidden, Gone
from dsd_operator.reconcile import handover
from dsd_operator.render.context import RenderContext
from dsd_operator.status.observed import Observed
from dsd_operator.status.workload import Workload
from tests.unit.resources import CONTEXT, resource

NODES = {"engine.nodes": 2, "engine.tensorParallelSize": 2}


class Recorder:
    """A client that writes down what it is told to scale and to delete."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.calls: list[tuple[str, int]] = []
        self._error = error

    async def scale(self, thing: Mapping[str, Any], replicas: int) -> None:
        if self._error:
            raise self._error
        self.calls.append((thing["kind"], replicas))

    async def delete(self, thing: Mapping[str, Any]) -> None:
        self.calls.append((thing["kind"], -1))


def workload(kind: str, asked: int, there: int, ready: int, current: bool = True, **meta: Any) -> Workload:
    live = {"kind": kind, "metadata": {"name": "demo", **meta}, "spec": {"replicas": asked}}
    return Workload(live, current, there, there, ready)


async def released(
    old: Workload | None, new: Workload | None, client: Recorder | None = None, scaled_by: str = "", **changes: Any
) -> tuple[list[tuple[str, int]], Any]:
    recorder = client or Recorder()
    seen = Observed(tuple(found for found in (old, new) if found), (), None, scaled_by=scaled_by)
    report = await handover.release(recorder, resource({**NODES, **changes}), seen)  # type: ignore[arg-type]
    return recorder.calls, report


OLD = "Deployment"
NEW = "LeaderWorkerSet"


@pytest.mark.parametrize(
    ("replicas", "rollout", "asked", "ready", "keep"),
    [
        (1, (0, 1), 1, 0, [(OLD, 0)]),
        (1, (1, 0), 1, 0, []),
        (1, (1, 0), 1, 1, [(OLD, 0)]),
        (3, (0, 1), 3, 0, [(OLD, 2)]),
        (3, (0, 1), 2, 0, []),
        (3, (0, 1), 2, 1, [(OLD, 1)]),
        (3, (0, 3), 3, 0, [(OLD, 0)]),
        (0, (0, 1), 2, 0, [(OLD, 0)]),
    ],
)
async def test_the_old_one_keeps_what_a_roll_out_would(
    replicas: int, rollout: tuple[int, int], asked: int, ready: int, keep: list[tuple[str, int]]
) -> None:
    numbers = {"maxSurge": rollout[0], "maxUnavailable": rollout[1]}
    calls, report = await released(
        workload(OLD, asked, asked, asked), workload(NEW, 1, ready, ready), replicas=replicas, rollout=numbers
    )
    assert calls == keep
    assert report.again > 0


@pytest.mark.parametrize(("scaled_by", "keep", "done"), [("", [], False), ("by-queue", [(OLD, 0)], True)])
async def test_an_autoscaler_of_the_new_one_decides_how_many_there_are_to_be(
    scaled_by: str, keep: list[tuple[str, int]], done: bool
) -> None:
    """The number of the resource, 3, is not in force then: the old one would wait for it for ever."""
    new = workload(NEW, 1, 1, 1)
    calls, _ = await released(workload(OLD, 1, 1, 1), new, scaled_by=scaled_by, replicas=3)
    assert calls == keep
    _, report = await released(None, new, scaled_by=scaled_by, replicas=3)
    assert (report.again == 0) is done, "no reason to look again and again"


async def test_it_goes_when_its_last_pod_has() -> None:
    assert (await released(workload(OLD, 0, 1, 0), workload(NEW, 1, 0, 0)))[0] == []
    assert (await released(workload(OLD, 0, 0, 0), workload(NEW, 1, 0, 0)))[0] == [(OLD, -1)]


@pytest.mark.parametrize("new", [None, workload(NEW, 1, 0, 0, current=False)], ids=["none", "nobody-works-on-it"])
async def test_nothing_goes_before_the_new_one_is_taken_care_of(new: Workload | None) -> None:
    """Its API may be missing, or its controller."""
    calls, report = await released(workload(OLD, 1, 1, 1), new)
    assert calls == []
    assert report.again > 0


async def test_one_that_is_on_its_way_out_is_left() -> None:
    old = workload(OLD, 1, 1, 1, deletionTimestamp="2030-01-01T00:00:00Z")
    assert (await released(old, workload(NEW, 1, 1, 1)))[0] == []


async def test_a_refusal_is_told_and_tried_again() -> None:
    refused = Recorder(Forbidden(403, "no"))
    _, report = await released(workload(OLD, 1, 1, 1), workload(NEW, 1, 1, 1), refused)
    assert report.retry
    assert [(f.kind, f.name) for f in report.failures] == [(OLD, "demo")]


@pytest.mark.parametrize("error", [Conflict(409, "changed"), Gone(404, "not found")], ids=["changed", "gone"])
async def test_one_that_has_changed_since_it_was_read_is_no_failure(error: ApiError) -> None:
    _, report = await released(workload(OLD, 1, 1, 1), workload(NEW, 1, 1, 1), Recorder(error))
    assert (report.retry, report.failures) == (True, ())


@pytest.mark.parametrize(
    ("replicas", "surge", "held", "wanted"), [(3, 0, 0, 3), (3, 0, 3, 0), (3, 0, 2, 1), (3, 1, 3, 1), (1, 1, 1, 1)]
)
def test_the_new_one_takes_what_is_free(replicas: int, surge: int, held: int, wanted: int) -> None:
    context = RenderContext(CONTEXT.runtime_image, CONTEXT.revision, held=held)
    asked = resource({"replicas": replicas, "rollout": {"maxSurge": surge, "maxUnavailable": 1}})
    assert context.replicas(asked) == wanted
