"""All checks in order, and one sentence about the whole. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.status.meanings import MEANINGS
from dsd_operator.status.reasons import ON_THE_WAY, Reason
from dsd_operator.status.states import state_of
from kubectl_dsd.explain import check_budgets, check_children, check_operator, check_pods, check_schedule
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, Weight, error, info, together

_CHECKS: Final = (
    check_operator.check,
    check_children.check,
    check_pods.check,
    check_schedule.check,
    check_budgets.check,
)


@dataclass(frozen=True)
class Verdict:
    """What explains the state of a deployment; `unseen` is what could not be looked at.

    `state` is its name in docs/reference/states.md, empty where it has none or the operator has yet to see the spec.
    """

    namespace: str
    name: str
    ready: bool
    state: str
    findings: tuple[Finding, ...]
    unseen: tuple[str, ...]

    @property
    def weight(self) -> Weight:
        """Of the heaviest finding."""
        return max((found.weight for found in self.findings), default=Weight.INFO)

    @property
    def sentence(self) -> str:
        """The whole in a line."""
        if self.weight is Weight.ERROR:
            return "not Ready" if not self.ready else "Ready, but not all is well"
        if self.weight is Weight.WARNING:
            return "Ready, with something to look at" if self.ready else "not Ready yet, with something to look at"
        return "nothing wrong" if self.ready else "nothing wrong so far, and not Ready yet"

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "ready": self.ready,
            "verdict": self.sentence,
            "state": self.state or None,
            "findings": [found.data() for found in self.findings],
            "unseen": list(self.unseen),
        }


def judge(facts: Facts) -> Verdict:
    """Run every check."""
    ready = facts.current and facts.condition("Ready").get("status") == "True"
    findings = [found for check in _CHECKS for found in check(facts)]
    findings += _by_condition(facts, findings, ready)
    unseen = tuple(dict.fromkeys(facts.unseen))
    state = state_of(facts.status) if facts.current else None
    name = state.name if state is not None else ""
    return Verdict(facts.meta["namespace"], facts.meta["name"], ready, name, tuple(together(findings)), unseen)


def _by_condition(facts: Facts, findings: list[Finding], ready: bool) -> Iterator[Finding]:
    """The operator's own word where no check found what keeps the deployment from being Ready."""
    if ready or not facts.current or any(found.weight is Weight.ERROR for found in findings):
        return
    moving, condition = facts.condition("Progressing"), facts.condition("Ready")
    reason, message = str(condition.get("reason") or "NotReady"), str(condition.get("message") or "")
    if moving.get("reason") == Reason.PROGRESS_DEADLINE_EXCEEDED:
        yield error(
            Reason.PROGRESS_DEADLINE_EXCEEDED,
            "pods were not ready within the time that they may take",
            "See how far the engine is in its log, or raise spec.startup.timeoutSeconds.",
            said=[str(moving.get("message") or "")],
        )
    elif reason in ON_THE_WAY:
        if not any(found.reason in ON_THE_WAY for found in findings):
            yield info(reason, "it is on its way", "Wait.", said=[message])
    else:
        meaning = MEANINGS.get(Reason(reason)) if reason in set(Reason) else None
        cause = meaning.means if meaning else "the operator says why, and no more is found"
        remedy = meaning.remedy if meaning and meaning.remedy else "see its message"
        yield error(reason, cause, f"{remedy[:1].upper()}{remedy[1:]}.", said=[message])
