"""Two operators at the same time, which an upgrade with the chart's strategy never makes: they agree in the end."""

import signal

import pytest

from tests.faults import faults
from tests.faults.scenarios import ENVELOPE, PLAIN, REPLICAS
from tests.faults.stage import Stage
from tests.integration.operator_process import OperatorProcess
from tests.integration.world import FIRST, SECOND, THIRD
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS = 60.0


def passes(operator: OperatorProcess) -> float:
    """Passes that succeeded so far."""
    return operator.metric("dsd_operator_reconcile_total", result="success")


@pytest.mark.long
def test_they_agree_and_fall_silent(stage: Stage) -> None:
    both = [stage.operator(RESYNC_SECONDS="0.5"), stage.operator(RESYNC_SECONDS="0.5")]
    stage.create(FIRST, **PLAIN)
    stage.wait_settled(FIRST, REPLICAS)
    pods = stage.uids()
    for schedule in (SECOND, THIRD, FIRST, SECOND):
        stage.schedule(schedule)
    stage.wait_settled(SECOND, REPLICAS)
    assert stage.uids() == pods
    stage.patch(**ENVELOPE)
    stage.wait_settled(SECOND, REPLICAS)
    deployment = stage.wait_child("Deployment")
    assert deployment["metadata"]["generation"] == 2, "one roll-out, for the one change that needs it"
    stage.quiet()
    writes, before = len(stage.proxy.writes()), [passes(operator) for operator in both]
    wait_for(
        "ten passes of each", lambda: [passes(operator) for operator in both],
        lambda now: all(n >= b + 10 for n, b in zip(now, before, strict=True)), SECONDS,
    )  # fmt: skip
    assert len(stage.proxy.writes()) == writes, "each would undo what the other does"
    assert stage.trail().deleted == ()
    assert stage.trail().remade() == []


@pytest.mark.long
def test_one_that_was_frozen_in_the_middle(stage: Stage) -> None:
    """A node that was suspended: the old operator wakes with requests in its hands that are long out of date."""
    old = stage.operator()
    stage.create(FIRST, **PLAIN)
    stage.wait_settled(FIRST, REPLICAS)
    pods = stage.uids()
    gate = faults.Gate()
    rule = stage.proxy.on(lambda call: call.plural == "configmaps" and call.write, gate)
    stage.schedule(SECOND)
    wait_for("the ConfigMap's write to be held", lambda: rule.hit, bool, SECONDS, 0.02)
    old.send_signal(signal.SIGSTOP)
    stage.proxy.lift()
    new = stage.operator()
    stage.wait_settled(SECOND, REPLICAS)
    stage.schedule(THIRD)
    stage.wait_settled(THIRD, REPLICAS)
    gate.opened = True
    wait_for("the late write to be carried out", lambda: rule.hit[0].reached, bool, SECONDS, 0.02)
    old.send_signal(signal.SIGCONT)
    stage.quiet()
    stage.wait_settled(THIRD, REPLICAS)
    assert new.running
    assert stage.uids() == pods
    assert stage.trail().deleted == ()
