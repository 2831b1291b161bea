"""Every reason that a condition can have is in the rules that are about it: in one of them, and in the right one."""

import re
from typing import Final

import pytest

from dsd_operator.status.reasons import ON_THE_WAY, Reason
from dsd_operator.status.states import STATES, State
from tests.unit.rules.case import Rule, alerts

_SELECTOR: Final = re.compile(r"dsd_operator_condition\{([^}]*)\}")
_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def _selects(rule: Rule, kind: str, status: str, reason: str) -> bool:
    """Whether a rule reads the series of this condition."""
    series = {"type": kind, "status": status, "reason": reason}
    selectors = [_MATCHER.findall(found) for found in _SELECTOR.findall(rule["expr"])]
    return any(all(_fits(series[label], *rest) for label, *rest in matchers) for matchers in selectors)


def _fits(value: str, operator: str, wanted: str) -> bool:
    alike = re.fullmatch(wanted, value) is not None if "~" in operator else value == wanted
    return alike is not operator.startswith("!")


def _causes(reason: str, status: str = "False") -> list[str]:
    """By their label: the alerts on a resource that is not Ready for this reason."""
    return [r["labels"]["cause"] for r in alerts()["DSDDeploymentNotReady"] if _selects(r, "Ready", status, reason)]


@pytest.mark.parametrize("reason", Reason)
def test_not_ready_has_one_alert_for_each_reason(reason: Reason) -> None:
    if reason is Reason.SCHEDULING_GATED:
        assert _causes(reason) == [], "held back as somebody asked for, however long"
    elif reason in (Reason.ROLLING_OUT, Reason.POD_NOT_READY):
        assert _causes(reason) == ["standstill"], "as long as many pods take, while they come and go"
    elif reason in ON_THE_WAY or reason is Reason.DEGRADED:
        assert _causes(reason) == ["starting"]
    else:
        assert _causes(reason) == ["blocked"]
    assert _causes(reason, "True") == []


@pytest.mark.parametrize("reason", Reason)
def test_a_schedule_that_is_not_in_use_has_one_alert(reason: Reason) -> None:
    names = ("DSDScheduleNotApplied", "DSDPluginOff")
    found = [name for name in names if any(_selects(r, "ScheduleApplied", "False", reason) for r in alerts()[name])]
    assert len(found) == int(reason is not Reason.CREATING)
    assert (found == ["DSDPluginOff"]) is (reason is Reason.RUNTIME_PLUGIN_OFF)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_states_in_which_something_is_wrong_end_in_an_alert(state: State) -> None:
    causes = _causes(state.ready.reason, state.ready.status)
    assert (causes == ["blocked"]) is (state.ready.status == "False" and state.ready.reason in state.warns) or (
        state.ready.reason is Reason.DEGRADED
    )


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_reasons_of_one_state_end_in_one_alert(state: State) -> None:
    held = {Reason.SCHEDULING_GATED}
    causes = {tuple(_causes(reason, state.ready.status)) for reason in (state.ready.also | {state.ready.reason}) - held}
    assert len(causes) == int(state.ready.reason not in held)
