"""Random changes of all fields together, on several deployments at a time, with an operator that is killed now and
then; after each change every deployment equals a fresh one with the same spec."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.campaign.campaign import Campaign
from tests.campaign.conftest import complaints
from tests.campaign.schema import MISSING, Json, get, objects, put
from tests.campaign.server import Server
from tests.campaign.values import WALKED, others_of, set_of, start_of
from tests.campaign.walks import Step
from tests.integration.operator_process import OperatorProcess

pytestmark = pytest.mark.integration

SIDE_BY_SIDE: Final = 10
EXAMPLES: Final = 16
STEPS: Final = 12
START: Final = start_of("model.name")

Change = tuple[str, Any]


@cache
def values(path: str) -> Sequence[Any]:
    """Everything that a field is given in the campaign."""
    return [get(set_of(path), path), get(start_of(path), path), *others_of(path), MISSING, None]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A field with one of its values, or an object emptied or left out."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(sorted(objects()))), draw(st.sampled_from([{}, MISSING]))
    path = draw(st.sampled_from(WALKED))
    return path, draw(st.sampled_from(values(path)))


class Mixtures(RuleBasedStateMachine):
    """`SIDE_BY_SIDE` deployments, each on a way of its own."""

    def __init__(self, campaign: Campaign, operator: OperatorProcess) -> None:
        super().__init__()
        self.campaign, self.operator = campaign, operator
        campaign.make_fresh([START])
        self.under = campaign.begin([(f"mixture {number}", START) for number in range(SIDE_BY_SIDE)])
        self.healthy: list[Json] = [START] * SIDE_BY_SIDE

    @rule(drawn=st.lists(changes(), min_size=SIDE_BY_SIDE, max_size=SIDE_BY_SIDE))
    def change(self, drawn: Sequence[Change]) -> None:
        """Another change for each, on top of all that came before."""
        pairs = zip(self.under, drawn, strict=True)
        self.go([Step(f"{path} = {value}", put(u.spec, path, value)) for u, (path, value) in pairs])

    @rule()
    def recover(self) -> None:
        """Back to the last spec with which all was well."""
        self.go([Step("recovered", spec) for spec in self.healthy])

    @rule()
    def start_over(self) -> None:
        """Back to the first spec."""
        self.go([Step("reverted", START)] * SIDE_BY_SIDE)

    @rule()
    def kill(self) -> None:
        """The operator dies and comes back."""
        self.operator.kill()
        self.operator.start()

    def go(self, steps: Sequence[Step]) -> None:
        """Take these steps."""
        self.campaign.make_fresh(step.spec for step in steps)
        self.campaign.turn(list(zip(self.under, steps, strict=True)))
        pairs = zip(self.under, self.healthy, strict=True)
        self.healthy = [u.spec if u.picture.healthy else before for u, before in pairs]

    def teardown(self) -> None:
        """Make room."""
        print("\n".join([self.campaign.told(), *self.campaign.problems]), flush=True)
        self.campaign.remove([u.name for u in self.under])


@pytest.mark.long
def test_mixtures_of_all_fields(server: Server, operator: OperatorProcess) -> None:
    campaign = Campaign(server)
    # Nothing fails on the way: hypothesis would play it again, and a server that has been used is not what it was. A
    # problem names its deployment's last change.
    chosen = settings(max_examples=EXAMPLES, stateful_step_count=STEPS, phases=[Phase.generate], deadline=None)
    machine: Any = lambda: Mixtures(campaign, operator)  # noqa: E731 - typed as a class, and called
    run_state_machine_as_test(machine, settings=chosen)
    assert not campaign.problems, "\n".join(campaign.problems)
    assert complaints(operator) == []
