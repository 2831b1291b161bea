"""The operator dies after any of its writes: the next one carries on to the same end, and destroys nothing.

The writes are those of a run that nothing disturbs, so a new child is in the campaign from its first day.
"""

import os
from typing import Final

import pytest

from dsd_operator.render.extras import EXTRAS
from tests.faults.conftest import NewStage
from tests.faults.scenarios import (
    OPTIONS,
    PLAIN,
    SCENARIOS,
    SEVERAL_NODES,
    Scenario,
    harmless,
    interrupted,
    undisturbed,
)
from tests.unit.resources import resource

pytestmark = pytest.mark.integration

SHORT: Final = ("all-at-once", 4)
ONLY: Final = os.environ.get("DSD_FAULTS_ONLY", "")
"""A scenario's name: the campaign plays this one alone."""


@pytest.mark.usefixtures("monitored")
def test_killed_in_the_middle(new_stage: NewStage) -> None:
    """The short cut of the campaign: one write of one scenario."""
    name, k = SHORT
    wanted = undisturbed(new_stage(), SCENARIOS[name])
    assert wanted.writes >= k
    run = interrupted(new_stage(), SCENARIOS[name], k, wanted)
    assert run.killed is not None
    harmless(SCENARIOS[name], run, wanted)


@pytest.mark.long
@pytest.mark.usefixtures("monitored")
@pytest.mark.parametrize("name", [name for name in SCENARIOS if ONLY in ("", name)])
def test_killed_after_each_write(new_stage: NewStage, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The campaign: each write of each scenario."""
    each_write(new_stage, capsys, name, SCENARIOS[name])


@pytest.mark.long
@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize("name", [name for name in SEVERAL_NODES if ONLY in ("", name)])
def test_killed_after_each_write_of_several_nodes(
    new_stage: NewStage, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The same for engines over several nodes, and on their way from one kind of workload to the other."""
    each_write(new_stage, capsys, name, SEVERAL_NODES[name])


def each_write(new_stage: NewStage, capsys: pytest.CaptureFixture[str], name: str, scenario: Scenario) -> None:
    """Kill after each write of a scenario that an undisturbed run has."""
    wanted = undisturbed(new_stage(), scenario)
    killed = 0
    for k in range(1, wanted.writes + 1):
        run = interrupted(new_stage(), scenario, k, wanted)
        harmless(scenario, run, wanted)
        killed += run.killed is not None
        with capsys.disabled():
            print(f"{name}: killed after write {k} of {wanted.writes}: {run.killed or 'not reached'}", flush=True)
    assert killed >= wanted.writes * 0.8, "some writes depend on timing, most do not"


def test_every_option_is_on() -> None:
    """A child that the campaign does not bring about would be left out of it in silence."""
    full = resource({**PLAIN, **OPTIONS})
    unknown_here = {"HTTPRoute", "InferencePool"}
    assert {extra.kind for extra in EXTRAS if not extra.wanted(full)} <= unknown_here
