"""`kubectl dsd explain` names the state that the operator's status shows, and is silent about one that is outdated.

Without a pod only the operator's own word is left; tests/integration/test_states.py explains each state with its pods.
"""

import re
from typing import Any

import pytest

from dsd_operator.status.states import STATES, State
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Weight
from kubectl_dsd.explain.verdict import judge
from tests.unit.status.test_states import status_of


def facts(state: State, generation: int = 2) -> Facts:
    """A deployment in this state, with nothing around it."""
    applied = next(a for a in ("1/2", "0/2", "0/0") if re.fullmatch(state.applied, a))
    status: dict[str, Any] = {**status_of(state, applied), "observedGeneration": 2}
    meta = {"name": "demo", "namespace": "team-a", "generation": generation}
    return Facts({"metadata": meta, "spec": {}, "status": status})


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_state_is_named(state: State) -> None:
    verdict = judge(facts(state))
    assert verdict.state == verdict.data()["state"] == state.name
    if state.ready.status != "True" and state.ready.reason in state.warns:
        assert any(found.reason in state.warns for found in verdict.findings), "what is wrong is explained"
    if not state.warns:
        assert verdict.weight is Weight.INFO, "nothing is wrong"


def test_a_status_of_an_older_spec_is_no_state() -> None:
    assert judge(facts(STATES[0], generation=3)).state == ""
