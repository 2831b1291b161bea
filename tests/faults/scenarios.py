"""What a user does to a resource, and one run of it: undisturbed, or with the operator killed in the middle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.cluster.resources import DEPLOYMENT, LEADER_WORKER_SET, Resource
from tests.faults.calls import Call
from tests.faults.faults import KillAfter
from tests.faults.stage import Stage
from tests.faults.trail import Trail
from tests.integration.world import FIRST, SECOND, Triples, ranges
from tools.testbed.waiting import wait_for

SECONDS: Final = 60.0
REPLICAS: Final = 2

Spec = Mapping[str, Any]

PLAIN: Final[Spec] = {"replicas": REPLICAS, "rollout": {"minReadySeconds": 0}}

OPTIONS: Final[Spec] = {
    "cache": {"size": "1Gi", "accessMode": "ReadWriteMany"},
    "monitoring": {"podMonitor": {"enabled": True}},
    "networkPolicy": {"enabled": True},
    "podDisruptionBudget": {"enabled": True},
}
"""Every option that brings a child and that this API server knows."""

OFF: Final[Spec] = {name: {"enabled": False} for name in ("networkPolicy", "podDisruptionBudget")} | {
    "monitoring": {"podMonitor": {"enabled": False}}
}

GROUPS: Final[Spec] = {"engine": {"nodes": 2, "tensorParallelSize": 2}}
"""Engines over several nodes: a LeaderWorkerSet."""

PODS: Final[Spec] = {"engine": {"nodes": 1, "tensorParallelSize": None}}
"""On one node again, as a patch."""

ENVELOPE: Final[Spec] = {"sharedMemory": {"sizeLimit": "1Gi"}}


@dataclass(frozen=True)
class Scenario:
    """`after` is merged into a resource with `before`, in one write; without `before` the resource is created."""

    after: Spec
    before: Spec | None = field(default_factory=lambda: dict(PLAIN))
    schedule: Triples = field(default_factory=lambda: FIRST)
    replicas: int = REPLICAS
    rolls: bool = False
    """Whether pods are replaced, as the user asked for."""
    leaves: Resource | None = None
    """The workload that the engines move away from."""

    def act(self, stage: Stage) -> None:
        """What the user does."""
        stage.moves = self.leaves is not None
        if self.before is None:
            stage.create(self.schedule, **self.after)
        else:
            stage.patch(schedule=ranges(self.schedule), **self.after)


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "create": Scenario(after={**PLAIN, **OPTIONS}, before=None),
    "schedule": Scenario(after={}, schedule=SECOND),
    "envelope": Scenario(after=ENVELOPE, rolls=True),
    "replicas": Scenario(after={"replicas": 3}, replicas=3),
    "options-off": Scenario(after=OFF, before={**PLAIN, **OPTIONS}),
    "all-at-once": Scenario(
        after={**ENVELOPE, **OFF, "replicas": 1}, before={**PLAIN, **OPTIONS}, schedule=SECOND, replicas=1, rolls=True
    ),
}


ONE: Final[Spec] = {**PLAIN, "replicas": 1}

SEVERAL_NODES: Final[Mapping[str, Scenario]] = {
    "groups": Scenario(after={**PLAIN, **GROUPS}, before=None),
    "groups-envelope": Scenario(after=ENVELOPE, before={**ONE, **GROUPS}, replicas=1, rolls=True),
    "to-groups": Scenario(after=GROUPS, schedule=SECOND, rolls=True, leaves=DEPLOYMENT),
    "from-groups": Scenario(
        after=PODS, before={**PLAIN, **GROUPS}, schedule=SECOND, rolls=True, leaves=LEADER_WORKER_SET
    ),
    "one-to-groups": Scenario(after=GROUPS, before=ONE, replicas=1, rolls=True, leaves=DEPLOYMENT),
}
"""Those that take the controller of LeaderWorkerSets."""


@dataclass(frozen=True)
class Run:
    """What came of a scenario."""

    final: Mapping[str, Any]
    trail: Trail
    writes: int
    pods: tuple[list[str], list[str]]
    """Before and after, by uid."""
    killed: Call | None = None
    """The write that was the operator's last."""

    def like(self, stage: Stage, since: int, before: list[str]) -> "Run":
        """A run on `stage` that came to the same end."""
        return Run(self.final, stage.trail(since), self.writes, (before, stage.uids()))


def undisturbed(stage: Stage, scenario: Scenario) -> Run:
    """Play it to the end, and count the writes."""
    stage.operator()
    since, before = stage.prepare(scenario.before)
    scenario.act(stage)
    stage.wait_settled(scenario.schedule, scenario.replicas)
    if scenario.leaves is not None:
        left = scenario.leaves
        wait_for(f"the {left.kind} to go", lambda: stage.look(left), lambda found: found is None, SECONDS, 0.1)
    final = stage.quiet()
    writes = sum(call.write and call.reached for call in stage.proxy.calls[since:])
    return Run(final, stage.trail(since), writes, (before, stage.uids()))


def interrupted(stage: Stage, scenario: Scenario, k: int, wanted: Run) -> Run:
    """Kill the operator after the k-th write, start it again, and wait for the end of the undisturbed run `wanted`."""
    operator = stage.operator()
    since, before = stage.prepare(scenario.before)
    killer = KillAfter(k, operator.kill)
    stage.proxy.on(lambda call: call.write, killer)
    scenario.act(stage)

    def over() -> bool:
        stage.serve()  # pods come and go meanwhile, and later writes are about them
        return killer.done or stage.final() == wanted.final

    wait_for(f"write {k}", over, bool, SECONDS, 0.05)
    killed = killer.last if killer.done else None
    stage.proxy.lift()
    if killed is not None:
        operator.start()
    stage.wait_final(wanted.final)
    return Run(stage.final(), stage.trail(since), k, (before, stage.uids()), killed)


def harmless(scenario: Scenario, run: Run, wanted: Run) -> None:
    """Nothing was destroyed on the way that an undisturbed run keeps."""
    assert set(run.trail.deleted) <= set(wanted.trail.deleted)
    assert run.trail.remade() == []
    assert run.trail.goes_back() == []
    assert len(run.trail.schedules) <= max(1, len(wanted.trail.schedules)), run.trail
    _no_detours(run.trail.templates, wanted.trail.templates)
    if scenario.leaves is None:  # else it depends on how fast pods get ready; none may come back all the same
        _no_detours(run.trail.replicas, wanted.trail.replicas)
    if scenario.before is not None and not scenario.rolls:
        assert set(run.pods[0]) <= set(run.pods[1]), "a pod was replaced"


def _no_detours(found: Mapping[str, Sequence[Any]], wanted: Mapping[str, Sequence[Any]]) -> None:
    """No workload was written with more values than in an undisturbed run."""
    for plural, values in found.items():
        assert len(values) <= max(1, len(wanted.get(plural, ()))), (plural, found)
