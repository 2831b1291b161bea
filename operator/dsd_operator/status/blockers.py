"""What stands in the way of a resource, worst first: one reason and one message that a person can act on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dsd_operator.render import history
from dsd_operator.render.extras import EXTRAS
from dsd_operator.status.conditions import shorten
from dsd_operator.status.observed import ApplyFailure, Observed, Outcome
from dsd_operator.status.pods import Fault, can_serve, fault_of, is_ready, phase_of
from dsd_operator.status.reasons import Reason
from dsd_runtime.schedule import Problem

_SHOWN: Final = 3
"""Problems or pods that a message spells out; the rest is counted."""

_MESSAGE_LENGTH: Final = 1024

_PHASES: Final = (Reason.PENDING, Reason.CONTAINER_CREATING, Reason.STARTING)

_BESIDE: Final = frozenset({history.KIND, *(extra.kind for extra in EXTRAS if not extra.needed_by_pods)})
"""Kinds of children that no pod needs."""


@dataclass(frozen=True)
class Blocker:
    """`reason` and `message` as a condition takes them."""

    reason: Reason
    message: str


def spec_blocker(outcome: Outcome) -> Blocker | None:
    """What kept the operator from making or changing the children: the spec itself, or the API server."""
    if outcome.problems:
        return Blocker(Reason.INVALID_SPEC, listed([_problem(p) for p in outcome.problems]))
    return _refused([failure for failure in outcome.failures if not _is_beside(failure)])


def beside_blocker(outcome: Outcome) -> Blocker | None:
    """What the spec asks for beside the pods and could not be made: nothing that serves waits for it."""
    return _refused([failure for failure in outcome.failures if _is_beside(failure)])


def pod_blocker(observed: Observed) -> Blocker | None:
    """What keeps pods from being made or from serving; None while they are simply starting."""
    refused = next((text for workload in observed.workloads for text in workload.refusals), None)
    if refused is not None:
        return Blocker(Reason.POD_CREATION_FAILED, shorten(f"pods cannot be created: {refused}", _MESSAGE_LENGTH))
    if observed.claim is not None and observed.claim.fault is not None:
        return Blocker(Reason.CACHE_NOT_AS_ASKED, observed.claim.fault)
    pods = [pod for pod in (*observed.pods, *observed.workers) if can_serve(pod)]
    faults = [*(fault for pod in pods if (fault := fault_of(pod)) is not None), *observed.crashes]
    return _worst(faults) if faults else None


def phase(observed: Observed) -> Blocker | None:
    """How far the pods are that are not ready and that nothing is wrong with: the one that has come least far."""
    late = [pod for pod in (*observed.pods, *observed.workers) if can_serve(pod) and not is_ready(pod)]
    found = [phase_of(pod) for pod in late if fault_of(pod) is None]
    if not found:
        return None
    first = min(found, key=lambda each: (_PHASES.index(each.reason), each.pod))
    alike = sum(each.reason is first.reason for each in found)
    others = f" (and {alike - 1} more pods)" if alike > 1 else ""
    return Blocker(first.reason, f"pod {first.pod}{others}: {first.message}")


def listed(texts: Sequence[str]) -> str:
    """The first few, the rest as a number."""
    shown = "; ".join(shorten(text, _MESSAGE_LENGTH) for text in texts[:_SHOWN])
    return shown if len(texts) <= _SHOWN else f"{shown}; and {len(texts) - _SHOWN} more"


def _is_beside(failure: ApplyFailure) -> bool:
    return failure.kind in _BESIDE or failure.in_use


def _refused(failures: Sequence[ApplyFailure]) -> Blocker | None:
    if not failures:
        return None
    return Blocker(_reason(failures), listed([_failure(f) for f in sorted(failures, key=lambda f: not f.foreign)]))


def _reason(failures: Sequence[ApplyFailure]) -> Reason:
    if any(failure.foreign for failure in failures):
        return Reason.FOREIGN_OBJECT
    if all(failure.unchangeable for failure in failures):
        return Reason.CACHE_NOT_AS_ASKED
    missing = all(failure.missing_kind for failure in failures)
    return Reason.API_MISSING if missing else Reason.APPLY_FAILED


def _worst(faults: Sequence[Fault]) -> Blocker:
    """The most frequent reason, with one pod as the example; a pod that is held back is the least of all."""
    counts = Counter(fault.reason for fault in faults)
    reason = min(counts, key=lambda r: (r is Reason.SCHEDULING_GATED, -counts[r], r.value))
    example = min((fault for fault in faults if fault.reason is reason), key=lambda fault: fault.pod)
    others = f" (and {counts[reason] - 1} more pods)" if counts[reason] > 1 else ""
    return Blocker(reason, f"pod {example.pod}{others}: {shorten(example.message, _MESSAGE_LENGTH)}")


def _problem(problem: Problem) -> str:
    return f"{problem.field}: {problem.message}"


def _failure(failure: ApplyFailure) -> str:
    return f"{failure.kind} {failure.name}: {failure.message}"
