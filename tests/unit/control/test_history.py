"""Reading the history of a resource's pods: what follows where it cannot be read."""

from typing import Any

import pytest

from dsd_operator.cluster.errors import Retry
from dsd_operator.reconcile import history
from dsd_operator.reconcile.memory import Memory
from dsd_operator.status.blockers import beside_blocker, spec_blocker
from dsd_operator.status.observed import Outcome
from dsd_operator.status.reasons import Reason
from tests.unit.resources import CONTEXT, resource


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
