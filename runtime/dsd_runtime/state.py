"""The schedule that one engine core uses, and the rule by which another replaces it.

Pure but for a lock: `engine` feeds it from HTTP and from the config file, the scheduler reads `current` once per step.
`current` is an immutable object that is swapped whole, so a step sees the old schedule or the new one, never a mixture.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from dsd_runtime.policy import Policy, policy_of
from dsd_runtime.protocol import Envelope, Revision, ScheduleState
from dsd_runtime.schedule import Problem, Ranges, Smoothing, schedule_hash, validate

Source = Literal["start", "file", "http"]


class Result(StrEnum):
    """What became of a proposed schedule; also the `result` label of `dsd_schedule_updates_total`."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    STALE = "stale"
    INVALID = "invalid"


@dataclass(frozen=True)
class Proposal:
    """A schedule somebody wants. `revision` is None only for a file that was edited by hand.

    `change` identifies one PUT, so that it, and nothing else, can be taken back.
    """

    ranges: Ranges
    revision: Revision | None
    source: Source
    change: str | None = None
    smoothing: Smoothing | None = None


@dataclass(frozen=True)
class Answer:
    """What became of a proposal, with the reasons where it was refused."""

    result: Result
    problems: tuple[Problem, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the engine uses what was proposed."""
        return self.result in (Result.APPLIED, Result.UNCHANGED)

    def text(self) -> str:
        """The problems in one line."""
        return "; ".join(f"{p.field}: {p.message}" for p in self.problems)


@dataclass(frozen=True)
class Active:
    """A schedule in use, with everything a step needs."""

    ranges: Ranges
    revision: Revision | None
    source: Source
    change: str | None
    smoothing: Smoothing | None
    policy: Policy = field(compare=False)

    @classmethod
    def of(cls, proposal: Proposal) -> "Active":
        """The active form of a valid proposal."""
        smoothing = proposal.smoothing
        policy = policy_of(proposal.ranges, smoothing)
        return cls(proposal.ranges, proposal.revision, proposal.source, proposal.change, smoothing, policy)

    def says(self, proposal: Proposal) -> bool:
        """Whether `proposal` has the content that is in use."""
        return (self.ranges, self.smoothing) == (proposal.ranges, proposal.smoothing)

    def describe(self) -> ScheduleState:
        """This schedule as the status shows it."""
        return ScheduleState(
            revision=self.revision,
            hash=schedule_hash(self.ranges, self.smoothing),
            source=self.source,
            ranges=self.ranges,
            smoothing=self.smoothing,
        )


class EngineState:
    """Holds the schedule of one engine core. Proposals may come from several threads; `current` is read without a lock.

    `changed` is called, under the lock, after each swap.
    """

    def __init__(
        self, envelope: Envelope, reasons: Mapping[int, str], start: Ranges, changed: Callable[[Active], None]
    ) -> None:
        """`start` is used until something else is accepted; it must be possible with `envelope`. `reasons` says of each
        K that is not among the envelope's allowed ones why not (`support.judge`)."""
        self.envelope = envelope
        self._reasons = reasons
        self.current = Active.of(Proposal(start, None, "start"))
        self._changed = changed
        self._newest: Revision | None = None
        self._before: tuple[Active, Revision | None] | None = None
        self._lock = threading.Lock()
        changed(self.current)

    def check(self, proposal: Proposal) -> Answer:
        """What `accept` would answer now, without doing it."""
        with self._lock:
            return self._judge(proposal)

    def accept(self, proposal: Proposal) -> Answer:
        """Use `proposal` from the next step on if it is newer and possible here."""
        with self._lock:
            answer = self._judge(proposal)
            if answer.result is Result.APPLIED:
                self._before = (self.current, self._newest)
                self._newest = proposal.revision or self._newest
                self._swap(Active.of(proposal))
            return answer

    def roll_back(self, change: str) -> bool:
        """Return to the schedule before the PUT `change`, if that is the one in use: another engine core refused it.

        Its revision may then come again: nobody was told that it is in use. False when that PUT changed nothing here,
        or something newer has come since.
        """
        with self._lock:
            if self.current.change != change or self._before is None:
                return False
            active, self._newest = self._before
            self._before = None
            self._swap(active)
            return True

    def _swap(self, active: Active) -> None:
        self.current = active
        self._changed(active)

    def _judge(self, proposal: Proposal) -> Answer:
        if proposal.revision is not None and (answer := self._judge_revision(proposal, proposal.revision)):
            return answer
        problems = impossible(proposal.ranges, self.envelope, self._reasons)
        if problems:
            return Answer(Result.INVALID, tuple(problems))
        if proposal.revision is None and self.current.source == "file" and self.current.says(proposal):
            return Answer(Result.UNCHANGED)
        return Answer(Result.APPLIED)

    def _judge_revision(self, proposal: Proposal, revision: Revision) -> Answer | None:
        """The answer where the revision alone decides: the same schedule again, or an older one."""
        if revision == self.current.revision and self.current.says(proposal):
            return Answer(Result.UNCHANGED)
        newest = self._newest
        if newest is None or revision.number > newest.number:
            return None
        relation = "the same number with other content" if revision.number == newest.number else "older"
        message = (
            f"revision {revision.number} of {revision.owner} is {relation}; the newest seen here is {newest.number} of "
            f"{newest.owner}. Send the schedule with a higher number"
        )
        return Answer(Result.STALE, (Problem("revision.number", message),))


def impossible(ranges: Ranges, envelope: Envelope, reasons: Mapping[int, str]) -> list[Problem]:
    """Why `ranges` cannot run in the engine that `envelope` describes; empty when they can."""
    problems = validate(ranges, envelope.num_speculative_tokens)
    if problems:
        return problems
    allowed = ", ".join(map(str, envelope.allowed_tokens))
    return [
        Problem(
            f"ranges[{i}].numSpeculativeTokens",
            f"K={k} is not possible with method {envelope.method} on model runner {envelope.model_runner}: "
            f"{reasons.get(k, 'not supported')}. Possible here: {allowed}",
        )
        for i, r in enumerate(ranges)
        if (k := r.num_speculative_tokens) not in envelope.allowed_tokens
    ]
