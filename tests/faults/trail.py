"""What the operator's writes did to the objects, told from the API server's answers to them, in order.

The oracle of the campaigns: whatever happened in between, nothing may be deleted that an undisturbed run keeps, no
value may come back that was replaced, no child may be made twice.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsd_operator.render.config_map import read
from tests.faults.calls import Call

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Trail:
    """Each sequence without repeats that follow each other."""

    deleted: tuple[str, ...]
    """`plural/name` of what a DELETE asked for."""
    uids: Mapping[str, tuple[str, ...]]
    """By plural: the objects that were written."""
    templates: Mapping[str, tuple[str, ...]]
    """Pod templates of the workloads, as text, by plural: engines may move from one kind to the other."""
    replicas: Mapping[str, tuple[int | None, ...]]
    schedules: tuple[str, ...]
    """Schedules of the ConfigMap, as text."""
    revisions: tuple[int, ...]
    generations: tuple[int, ...]
    """What the status said that it had seen."""

    def remade(self) -> list[str]:
        """Kinds of which the operator wrote more than one object."""
        return [plural for plural, uids in self.uids.items() if len(uids) > 1]

    def goes_back(self) -> list[str]:
        """Values that came back after they had been replaced, or numbers that fell."""
        sequences: Mapping[str, Iterable[tuple[Any, ...]]] = {
            "templates": self.templates.values(),
            "replicas": self.replicas.values(),
            "schedules": [self.schedules],
        }
        repeated = [name for name, each in sequences.items() if any(len(set(values)) < len(values) for values in each)]
        numbers = {"revisions": self.revisions, "generations": self.generations}
        return [*repeated, *(name for name, values in numbers.items() if list(values) != sorted(values))]


def of(calls: Iterable[Call]) -> Trail:
    """Follow the writes that reached the API server."""
    written = [call for call in calls if call.write and call.reached]
    answers = [(call.parts, call.answer) for call in written if call.answer and call.verb != "DELETE"]
    children = [(parts[1] or "", answer) for parts, answer in answers if parts[1] != "events" and parts[3] is None]
    workloads = {
        plural: [answer for kind, answer in children if kind == plural]
        for plural in ("deployments", "leaderworkersets")
    }
    files = [file for plural, answer in children if plural == "configmaps" and (file := read(answer)) is not None]
    statuses = [answer["status"] for parts, answer in answers if parts[3] == "status" and answer.get("status")]
    return Trail(
        deleted=tuple(f"{c.parts[1]}/{c.parts[2]}" for c in written if c.verb == "DELETE"),
        uids={plural: _each(children, plural) for plural in sorted({plural for plural, _ in children})},
        templates={plural: _steps(map(_template, each)) for plural, each in workloads.items() if each},
        replicas={
            plural: _steps(workload["spec"].get("replicas") for workload in each)
            for plural, each in workloads.items()
            if each
        },
        schedules=_steps(json.dumps([r.triple() for r in file.ranges]) for file in files),
        revisions=_steps(file.revision.number for file in files if file.revision is not None),
        generations=_steps(int(status.get("observedGeneration", 0)) for status in statuses),
    )


def _each(children: Iterable[tuple[str, Object]], plural: str) -> tuple[str, ...]:
    found = dict.fromkeys(answer["metadata"]["uid"] for kind, answer in children if kind == plural)
    # Each stored pod template is an object of its own, by design.
    return () if plural == "controllerrevisions" else tuple(found)


def _template(workload: Object) -> str:
    spec = workload["spec"]
    return json.dumps(spec.get("template") or spec.get("leaderWorkerTemplate"), sort_keys=True)


def _steps(values: Iterable[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for value in values:
        if not found or found[-1] != value:
            found.append(value)
    return tuple(found)
