"""The schedule that one engine core uses, and the rule by which another replaces it.

Pure but for a lock: `engine` feeds it from HTTP and from the config file, the scheduler reads `current` once per step.
`current` is an immutable object that is swapped whole, so a step sees the old schedule or the new one, never a mixture.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from dsd_runtime.policy import Policy, policy_of
from dsd_runtime.protocol import Envelope, Revision, ScheduleState
from dsd_runtime.schedule import Problem, Ranges, Smoothing, schedule_hash, validate

Source = Literal["start", "file", "http"]

MAX_HISTORY: Final = 16
"""Schedules kept, the one in use included, so that a PUT can be undone under later ones: two API servers may have a PUT
in the air at once, and each undoes its own."""


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

    def text(self) -> str:
        """The problems in one line."""
        return "; ".join(f"{p.field}: {p.message}" for p in self.problems)


@dataclass(frozen=True)
class Active:
    """A schedule in use, with everything a step needs."""

    ranges: Ranges
    revision: Revision | None
    source: Source
    smoothing: Smoothing | None
    policy: Policy = field(compare=False)
    changes: set[str] = field(compare=False)
    """The PUTs that asked for it and have not been undone."""
    shown: ScheduleState = field(compare=False)
    """As the status shows it; made once, for log, metrics and status ask for it at each change."""

    @classmethod
    def of(cls, proposal: Proposal) -> "Active":
        """The active form of a valid proposal."""
        ranges, revision, source, smoothing = proposal.ranges, proposal.revision, proposal.source, proposal.smoothing
        shown = ScheduleState(
            revision=revision,
            hash=schedule_hash(ranges, smoothing),
            source=source,
            ranges=ranges,
            smoothing=smoothing,
        )
        changes = {proposal.change} if proposal.change else set()
        return cls(ranges, revision, source, smoothing, policy_of(ranges, smoothing), changes, shown)

    def says(self, proposal: Proposal) -> bool:
        """Whether `proposal` has the content that is in use."""
        return (self.ranges, self.smoothing) == (proposal.ranges, proposal.smoothing)


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
        self._history = [self.current]
        self._forgotten: Revision | None = None
        self._newest: Revision | None = None
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
                self._append(Active.of(proposal))
            elif answer.result is Result.UNCHANGED and proposal.change and self.current.changes:
                self.current.changes.add(proposal.change)
            return answer

    def roll_back(self, change: str) -> bool:
        """Undo the PUT `change`, which another engine core refused; what came after it stays in use, and so does what
        another PUT asked for as well.

        Its revision may then come again: nobody was told that it is in use. False when nothing was undone here.
        """
        with self._lock:
            undone = next((active for active in self._history[1:] if change in active.changes), None)
            if undone is None:
                return False
            undone.changes.remove(change)
            if undone.changes:
                return False
            self._history = [active for active in self._history if active is not undone]
            self._newest = newest([self._forgotten, *(active.revision for active in self._history)])
            if undone is self.current:
                self._swap(self._history[-1])
            return True

    def _append(self, active: Active) -> None:
        self._history.append(active)
        if len(self._history) > MAX_HISTORY:
            self._forgotten = newest([self._forgotten, self._history.pop(0).revision])
        self._newest = newest([self._newest, active.revision])
        self._swap(active)

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
        seen = self._newest
        if seen is None or revision.number > seen.number:
            return None
        relation = "the same number with other content" if revision.number == seen.number else "older"
        message = (
            f"revision {revision.number} of {revision.owner} is {relation}; the newest seen here is {seen.number} of "
            f"{seen.owner}. Send the schedule with a higher number"
        )
        return Answer(Result.STALE, (Problem("revision.number", message),))


def newest(revisions: Iterable[Revision | None]) -> Revision | None:
    """The highest of the revisions that there are."""
    return max((r for r in revisions if r is not None), key=lambda r: r.number, default=None)


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
