"""What one reconcile pass saw and did, handed from `cluster`, `engine` and `reconcile` to the pure `summarize`.

Objects are plain dicts as the API server returns them; nothing here does I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dsd_operator.render import leader_worker_set as groups
from dsd_operator.status.cache import ExistingClaim
from dsd_operator.status.pods import Fault, name_of
from dsd_operator.status.workload import Workload
from dsd_runtime.protocol import EngineStatus, Revision
from dsd_runtime.schedule import Problem


@dataclass(frozen=True)
class Observed:
    """The children as they are now, dead pods included.

    There are two workloads while engines move from one node to several, or back.
    """

    workloads: tuple[Workload, ...]
    pods: tuple[Mapping[str, Any], ...]
    """Those that answer HTTP: one for each engine."""
    config_map: Mapping[str, Any] | None
    workers: tuple[Mapping[str, Any], ...] = ()
    """The other pods of engines over several nodes."""
    crashes: tuple[Fault, ...] = ()
    """Crashes of pods that are gone and whose successors are not ready yet."""
    claim: ExistingClaim | None = None
    """The claim that `spec.cache` names; None where it names none, or where the claim cannot be read."""

    scaled_by: str = ""
    """The autoscaler that scales the workload itself, in place of the resource; empty if none does."""

    monitoring_named: bool = False
    """Whether the operator's settings name whom network policies let in to read metrics."""

    def workload(self, kind: str) -> Workload | None:
        """The workload of this kind."""
        return next((workload for workload in self.workloads if workload.kind == kind), None)

    def newest(self, kind: str) -> "Observed":
        """The same with no pods but those that a roll-out to a workload of this kind leaves. What is wrong with the
        others does not keep it from going on: it replaces them."""
        behind = frozenset[str]().union(*(workload.behind for workload in self.workloads))
        grouped = kind == groups.KIND

        def stay(pods: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
            return tuple(p for p in pods if name_of(p) not in behind and (groups.number_of(p) >= 0) is grouped)

        crashes = tuple(crash for crash in self.crashes if grouped and crash.pod not in behind)
        return replace(self, pods=stay(self.pods), workers=stay(self.workers), crashes=crashes)


@dataclass(frozen=True)
class ApplyFailure:
    """One child that could not be applied; `foreign` when an object that is not ours is in the way, `missing_kind` when
    the cluster does not have the kind, `unchangeable` when the live object can never become what was asked, `in_use`
    when pods go on with the live object as it is."""

    kind: str
    name: str
    message: str
    foreign: bool = False
    missing_kind: bool = False
    unchangeable: bool = False
    in_use: bool = False


class PushState(StrEnum):
    """How one pod stands to the wanted schedule."""

    APPLIED = "Applied"
    UNREACHABLE = "PodUnreachable"
    UNAUTHORIZED = "TokenRefused"
    REFUSED = "RefusedByEngine"
    PLUGIN_OFF = "RuntimePluginOff"
    NOT_READY = "PodNotReady"


@dataclass(frozen=True)
class PushResult:
    """The outcome of bringing the schedule to one pod. `status` is the engine's own answer when there was one."""

    pod: str
    state: PushState
    message: str = ""
    status: EngineStatus | None = None


@dataclass(frozen=True)
class Outcome:
    """What the pass wanted and did. With `problems` (an invalid or unsupported spec) no workload was rendered; with
    ones of the schedule no ConfigMap either, and there is no revision and no wanted hash."""

    revision: Revision | None
    wanted_hash: str | None
    problems: tuple[Problem, ...] = ()
    failures: tuple[ApplyFailure, ...] = ()
    pushes: tuple[PushResult, ...] = ()
