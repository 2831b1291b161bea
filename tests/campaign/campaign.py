"""Carries out walks: all of them at the same time, one operator, one namespace; and beside them one fresh deployment
for every spec that a walk goes through."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.campaign.judge import Fresh, Turn, judge, untouched
from tests.campaign.picture import Picture, picture, settled
from tests.campaign.schema import Json
from tests.campaign.server import Answer, Server
from tests.campaign.walks import Step, Walk
from tools.testbed.waiting import WaitTimeoutError, wait_for

SECONDS: Final = 90.0
"""For all deployments of a turn to settle; one takes a fraction of a second."""

Pictures = Mapping[str, Picture]


def key(spec: Json) -> str:
    """A spec as a key."""
    return json.dumps(spec, sort_keys=True)


@dataclass
class Under:
    """A deployment on its walk."""

    name: str
    walk: str
    spec: Json
    picture: Picture


@dataclass
class Campaign:
    """Walks on one server; `problems` is what was found, a line each."""

    server: Server
    problems: list[str] = field(default_factory=list)
    writes: int = 0
    """Specs that the server took."""
    refusals: int = 0
    fresh: dict[str, Fresh] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1000))

    def run(self, walks: Sequence[Walk]) -> None:
        """All walks to their ends."""
        self.make_fresh(step.spec for walk in walks for step in walk.steps if step.compared)
        under = self.begin([(walk.name, walk.steps[0].spec) for walk in walks])
        pairs = list(zip(under, walks, strict=True))
        for turn in range(1, max(len(walk.steps) for walk in walks)):
            self.turn([(u, walk.steps[turn]) for u, walk in pairs if turn < len(walk.steps)])
        self.remove([u.name for u in under])

    def make_fresh(self, specs: Iterable[Json]) -> None:
        """A deployment for each spec that has none yet; what the server says, and what becomes of it."""
        wanted = {key(spec): spec for spec in specs if key(spec) not in self.fresh}
        named = {k: self._name("fresh") for k in wanted}
        answers = dict(zip(wanted, self._apply([(named[k], spec) for k, spec in wanted.items()]), strict=True))
        taken = [k for k, answer in answers.items() if not answer.refused]
        found = self._settled([named[k] for k in taken])
        self.fresh |= {k: Fresh(found.get(named[k]), answer.message) for k, answer in answers.items()}
        self.problems += [f"the server failed at {k}: {a.message}" for k, a in answers.items() if a.failed]
        self.problems += [
            f"a fresh deployment never settled: {found[named[k]].status.get('conditions')} of {k}"
            for k in taken
            if not found[named[k]].final
        ]
        self.remove(found)

    def begin(self, starts: Sequence[tuple[str, Json]]) -> list[Under]:
        """A deployment for each walk (its name and first spec)."""
        names = [self._name("walk") for _ in starts]
        self._apply([(name, spec) for name, (_, spec) in zip(names, starts, strict=True)])
        found = self._settled(names)
        return [Under(name, walk, spec, found[name]) for name, (walk, spec) in zip(names, starts, strict=True)]

    def turn(self, pairs: Sequence[tuple[Under, Step]]) -> None:
        """One step each, side by side; then what must be refused is tried."""
        answers = self._apply([(u.name, step.spec) for u, step in pairs])
        found = self._settled([u.name for u, _ in pairs])
        for (u, step), answer in zip(pairs, answers, strict=True):
            fresh = self.fresh[key(step.spec)] if step.compared else None
            turn = Turn(u.spec, u.picture, step.spec, found[u.name], fresh, answer.message, step.reaches)
            self._note(u, step.label, judge(turn))
            u.picture = found[u.name]
            if not answer.refused:
                u.spec = step.spec
        self._attempts([pair for pair in pairs if pair[1].attempts])

    def told(self) -> str:
        """What was done so far."""
        refused = sum(fresh.picture is None for fresh in self.fresh.values())
        sick = sum(fresh.picture is not None and not fresh.picture.healthy for fresh in self.fresh.values())
        return (
            f"{self.writes} specs taken and {self.refusals} refused; {len(self.fresh)} different ones, of which the "
            f"server refuses {refused} and the operator {sick}; {len(self.problems)} problems"
        )

    def remove(self, names: Iterable[str]) -> None:
        """Make room."""
        self.server.each(self.server.delete, names)

    def _attempts(self, pairs: Sequence[tuple[Under, Step]]) -> None:
        """Try what must be refused, and look that nothing came of it."""
        if not pairs:
            return
        tried = [(u, label, spec) for u, step in pairs for label, spec in step.attempts.items()]
        answers = self._apply([(u.name, spec) for u, _, spec in tried])
        for (u, label, _), answer in zip(tried, answers, strict=True):
            if answer.failed or not answer.refused:
                self._note(u, f"to refuse: {label}", [f"the server answered {answer.status} {answer.message}"])
        found = self._look([u.name for u, _ in pairs])
        for u, _ in pairs:
            self._note(u, "after refusals", untouched(u.picture, found[u.name]))

    def _apply(self, specs: Sequence[tuple[str, Json]]) -> list[Answer]:
        answers = self.server.each(lambda pair: self.server.apply(*pair), specs)
        self.writes += sum(not answer.refused for answer in answers)
        self.refusals += sum(answer.refused for answer in answers)
        return answers

    def _settled(self, names: Sequence[str]) -> Pictures:
        """Wait until all have settled; those that do not are told by the judge."""
        try:
            wait_for("all to settle", lambda: self._unsettled(names), lambda left: not left, SECONDS, 0.5)
        except WaitTimeoutError as error:
            self.problems.append(str(error))
        return self._look(names)

    def _unsettled(self, names: Sequence[str]) -> list[str]:
        done = {r["metadata"]["name"] for r in self.server.deployments() if settled(r)}
        return [name for name in names if name not in done]

    def _look(self, names: Sequence[str]) -> Pictures:
        wanted, children = set(names), self.server.children()
        return {
            resource["metadata"]["name"]: picture(resource, children.get(resource["metadata"]["uid"], []))
            for resource in self.server.deployments()
            if resource["metadata"]["name"] in wanted
        }

    def _note(self, under: Under, label: str, lines: Iterable[str]) -> None:
        self.problems += [f"{under.walk} / {label}: {line}" for line in lines]

    def _name(self, word: str) -> str:
        return f"{word}-{next(self._numbers)}"
