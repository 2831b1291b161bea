"""The states that a deployment can be in, and what its status says in each: one table for all who tell them apart.

`tools.generate_tables` writes docs/reference/states.md from it, `kubectl dsd explain` names the state by it, and the
tests bring each one about on a real API server or node and compare every condition, message and Event. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.status.conditions import Status
from dsd_operator.status.reasons import CANNOT_START, ConditionType, Reason

_ANY: Final = ""


@dataclass(frozen=True)
class Standing:
    """One condition in a state. `says` is a regular expression that its message matches somewhere; `also` are reasons
    that may stand in the place of `reason`, and mean the same for the state."""

    status: Status
    reason: Reason
    says: str = _ANY
    also: frozenset[Reason] = frozenset()

    def fits(self, condition: Mapping[str, Any]) -> bool:
        """Whether a condition of a status, empty where there is none, is this one; its message is not looked at."""
        return condition.get("status") == self.status and condition.get("reason") in self.also | {self.reason}


@dataclass(frozen=True)
class State:
    """One state. `applied` is a regular expression for the whole of status.schedule.applied."""

    name: str
    means: str
    available: Standing
    progressing: Standing
    schedule: Standing
    ready: Standing
    warns: tuple[Reason, ...] = ()
    """The Warning Events that entering it posts; of every other condition that changes there is a Normal one."""
    applied: str = r"\d+/\d+"

    @property
    def standings(self) -> Mapping[ConditionType, Standing]:
        """All conditions."""
        return {
            ConditionType.AVAILABLE: self.available,
            ConditionType.PROGRESSING: self.progressing,
            ConditionType.SCHEDULE_APPLIED: self.schedule,
            ConditionType.READY: self.ready,
        }


def state_of(status: Mapping[str, Any]) -> State | None:
    """The state that a status shows; None for one that has no name here."""
    return next((state for state in STATES if _shows(status, state)), None)


def _shows(status: Mapping[str, Any], state: State) -> bool:
    found = {c.get("type"): c for c in status.get("conditions") or ()}
    fits = all(standing.fits(found.get(kind.value, {})) for kind, standing in state.standings.items())
    applied = str((status.get("schedule") or {}).get("applied", ""))
    return fits and re.fullmatch(state.applied, applied) is not None


def _true(reason: Reason, says: str = _ANY, *also: Reason) -> Standing:
    return Standing("True", reason, says, frozenset(also))


def _false(reason: Reason, says: str = _ANY, *also: Reason) -> Standing:
    return Standing("False", reason, says, frozenset(also))


_NOT_YET: Final = Standing("Unknown", Reason.POD_NOT_READY, r"start with the schedule|starts with the schedule")
_NOBODY: Final = _false(Reason.NO_PODS_READY, r"^none of \d+ pods is ready yet$")
_SERVES: Final = _true(Reason.AVAILABLE, r"^\d+ of \d+ pods serve(, and \d+ more)?$")
_DONE: Final = _false(Reason.ROLLED_OUT, r"^\d+ of \d+ pods are up to date$")
_SOME_NOT_YET: Final = Standing("Unknown", Reason.POD_NOT_READY, r"^\d+ of \d+ pods use the schedule")
_IN_USE: Final = _true(Reason.APPLIED, r"^(\d+) of \1 pods use schedule [0-9a-f]{16}")

_UP_TO_DATE: Final = r"^\d+ of \d+ pods are up to date, [1-9]\d* ready; pod \S+: "
_POD: Final = r"^pod \S+: "

_STAGES: Final = (Reason.PENDING, Reason.CONTAINER_CREATING, Reason.STARTING, Reason.SCHEDULING_GATED)
_ENDS: Final = (
    Reason.CRASH_LOOP_BACK_OFF,
    Reason.OOM_KILLED,
    Reason.STARTUP_TIMEOUT,
    Reason.MODEL_HUB_UNREACHABLE,
    Reason.DEVICE_NOT_FOUND,
    Reason.STORAGE_FULL,
    Reason.STORAGE_ACCESS_DENIED,
)
_HELD_UP: Final = (
    *_ENDS,
    Reason.UNSCHEDULABLE,
    Reason.IMAGE_PULL_BACK_OFF,
    Reason.CONTAINER_CONFIG_ERROR,
    Reason.CONTAINER_START_ERROR,
    Reason.CACHE_NOT_AS_ASKED,
)
"""A pod's own faults that may go by themselves, or by something other than a change of the spec."""

_REFUSALS: Final = (
    Reason.APPLY_FAILED,
    Reason.FOREIGN_OBJECT,
    Reason.API_MISSING,
    Reason.CACHE_NOT_AS_ASKED,
    Reason.POD_CREATION_FAILED,
)
"""Why no pod is made as the spec says."""


def _on_the_way(name: str, means: str, reason: Reason, says: str) -> State:
    """Nothing is known to be wrong."""
    return State(name, means, _NOBODY, _true(reason, says), _NOT_YET, _false(reason, says))


def _fault(name: str, means: str, reason: Reason, says: str, moving: Reason | None) -> State:
    """A pod's own fault. `moving`: how far the pods are, while it may go by itself; None where it does not."""
    told = _false(reason, says)
    progress = _false(reason, says) if moving is None else _true(moving, says)
    return State(name, means, told, progress, _NOT_YET, told, (reason,))


def _held_up(name: str, means: str, reason: Reason, says: str) -> State:
    """The pods cannot even be made."""
    told = _false(reason, says)
    return State(name, means, told, told, _NOT_YET, told, (reason,))


def _schedule(name: str, means: str, reason: Reason, says: str, applied: str) -> State:
    """The pods serve, and do not use the schedule."""
    told = _false(reason, says)
    return State(name, means, _SERVES, _DONE, told, told, (reason,), applied)


_NONE, _SOME = r"0/\d+", r"[1-9]\d*/\d+"

STATES: Final[tuple[State, ...]] = (
    _on_the_way("pending", "pods are made and wait for a node", Reason.PENDING, "waits for a node"),
    _on_the_way(
        "pulling",
        "pods are on a node, which pulls the image, mounts volumes and runs init containers",
        Reason.CONTAINER_CREATING,
        "pulls the image, mounts the volumes",
    ),
    _on_the_way("loading", "engines load the model", Reason.STARTING, "container engine loads the model"),
    State(
        "ready", "all of the spec is in force", _SERVES, _DONE, _IN_USE, _true(Reason.READY, r"^\d+ of \d+ pods serve")
    ),
    State(
        "updating while serving",
        "pods are replaced one after the other, those that are left serve",
        _SERVES,
        _true(Reason.ROLLING_OUT, r"^\d+ of \d+ pods are up to date, [1-9]\d* ready"),
        _SOME_NOT_YET,
        _false(Reason.ROLLING_OUT, "pods are up to date"),
    ),
    State(
        "degraded",
        "some pods that served are not ready any more, the others serve; nothing is known to be wrong with those pods",
        _SERVES,
        _false(Reason.DEGRADED, r"^(\d+) of \1 pods are up to date, \d+ ready; pod \S+: container \S+ "),
        _SOME_NOT_YET,
        _false(Reason.DEGRADED, r"pod \S+: container \S+ "),
        (Reason.DEGRADED,),
    ),
    State(
        "degraded by a crash",
        "the same, and a pod says what is wrong with it: its own reason is Ready's",
        _SERVES,
        _false(Reason.DEGRADED, r"^(\d+) of \1 pods are up to date, \d+ ready; pod \S+: container \S+: "),
        _SOME_NOT_YET,
        _false(Reason.CRASH_LOOP_BACK_OFF, r"^pod \S+: container \S+: exits with code \d+", *_HELD_UP),
        (Reason.DEGRADED, Reason.CRASH_LOOP_BACK_OFF),
    ),
    State(
        "more pods on the way",
        "pods serve, and others that are asked for beside them, or in the place of lost ones, have yet to start",
        _SERVES,
        _true(Reason.STARTING, _UP_TO_DATE, *_STAGES),
        _SOME_NOT_YET,
        _false(Reason.STARTING, _UP_TO_DATE, *_STAGES),
    ),
    State(
        "held up while serving",
        "pods serve, and a new one has a fault that may still go: a roll-out or a scale-up waits for it",
        _SERVES,
        _true(Reason.ROLLING_OUT, _UP_TO_DATE, *_STAGES),
        _SOME_NOT_YET,
        _false(Reason.IMAGE_PULL_BACK_OFF, _POD, *_HELD_UP),
        (Reason.IMAGE_PULL_BACK_OFF,),
    ),
    State(
        "failed while serving",
        "pods serve, and a new one cannot start until somebody changes something: a roll-out stops there",
        _SERVES,
        _false(Reason.ENGINE_ARGUMENT_INVALID, _UP_TO_DATE, *CANNOT_START),
        _SOME_NOT_YET,
        _false(Reason.ENGINE_ARGUMENT_INVALID, _POD, *CANNOT_START),
        (Reason.ENGINE_ARGUMENT_INVALID,),
    ),
    State(
        "overdue while serving",
        "pods serve, and a new one did not get ready in time",
        _SERVES,
        _false(Reason.PROGRESS_DEADLINE_EXCEEDED, _UP_TO_DATE),
        _SOME_NOT_YET,
        _false(Reason.PROGRESS_DEADLINE_EXCEEDED, _UP_TO_DATE, *_HELD_UP),
        (Reason.PROGRESS_DEADLINE_EXCEEDED,),
    ),
    State(
        "refused while serving",
        "pods serve as before: the change cannot be used, or somebody refuses what it takes",
        _SERVES,
        _false(Reason.INVALID_SPEC, _ANY, *_REFUSALS),
        _IN_USE,
        _false(Reason.INVALID_SPEC, _ANY, *_REFUSALS),
        (Reason.INVALID_SPEC,),
    ),
    State(
        "scaled to zero",
        "`replicas` is 0: nothing serves, as asked",
        _false(Reason.SCALED_TO_ZERO, "as asked"),
        _DONE,
        _true(Reason.SCALED_TO_ZERO, "new ones start with the schedule"),
        _true(Reason.SCALED_TO_ZERO, "as asked"),
        applied="0/0",
    ),
    _fault("unschedulable", "no node fits", Reason.UNSCHEDULABLE, r"pod \S+: 0/\d+ nodes", Reason.PENDING),
    State(
        "held by a scheduling gate",
        "another controller (Kueue, for example) holds the pods back; no failure, however long it takes",
        _false(Reason.SCHEDULING_GATED, "held back by scheduling gate"),
        _true(Reason.SCHEDULING_GATED, "held back by scheduling gate"),
        _NOT_YET,
        _false(Reason.SCHEDULING_GATED, "held back by scheduling gate"),
    ),
    _fault(
        "image cannot be pulled",
        "the registry has no such image, or does not give it",
        Reason.IMAGE_PULL_BACK_OFF,
        "container engine: (ErrImagePull|ImagePullBackOff)",
        Reason.CONTAINER_CREATING,
    ),
    _fault(
        "claim missing",
        "`cache.existingClaim` names a claim that does not exist, has lost its volume or is being deleted",
        Reason.CACHE_NOT_AS_ASKED,
        r"^spec\.cache\.existingClaim: |pods are up to date, 0 ready; spec\.cache\.existingClaim: ",
        Reason.PENDING,
    ),
    _fault(
        "Secret missing",
        "the pods read a Secret or ConfigMap that does not exist",
        Reason.CONTAINER_CONFIG_ERROR,
        "container engine: CreateContainerConfigError: .*not found",
        Reason.CONTAINER_CREATING,
    ),
    _fault(
        "crash-looping",
        "a container ends again and again, for no cause that is known here",
        Reason.CRASH_LOOP_BACK_OFF,
        r"container \S+: exits with code \d+",
        Reason.STARTING,
    ),
    _fault(
        "out of memory",
        "a container goes over its memory limit",
        Reason.OOM_KILLED,
        "container engine: killed for exceeding its memory limit",
        Reason.STARTING,
    ),
    _fault(
        "model not found",
        "the engine cannot load the model; so too with the other reasons of engines that cannot start",
        Reason.MODEL_NOT_FOUND,
        r"container engine: exits with code \d+: ",
        None,
    ),
    _fault(
        "argument invalid",
        "vLLM refuses an argument",
        Reason.ENGINE_ARGUMENT_INVALID,
        r"container engine: exits with code \d+: .*error",
        None,
    ),
    _fault(
        "start-up too slow",
        "an engine was not healthy within `startup.timeoutSeconds`",
        Reason.STARTUP_TIMEOUT,
        r"container engine: was not healthy within \d+ s",
        Reason.STARTING,
    ),
    State(
        "deadline passed",
        "pods did not get ready in time, and nothing is known to be wrong with them",
        _NOBODY,
        _false(Reason.PROGRESS_DEADLINE_EXCEEDED, "pods are up to date, 0 ready"),
        _NOT_YET,
        _false(Reason.PROGRESS_DEADLINE_EXCEEDED, "pods are up to date, 0 ready"),
        (Reason.PROGRESS_DEADLINE_EXCEEDED,),
    ),
    _schedule(
        "schedule partly applied",
        "some pods use the schedule, others refuse it and go on with the one before",
        Reason.REFUSED_BY_ENGINE,
        r"^[1-9]\d* of \d+ pods use the schedule; pod \S+: ",
        _SOME,
    ),
    _schedule(
        "schedule refused by the engine",
        "no pod uses the schedule: engines refuse it, and go on with the one before",
        Reason.REFUSED_BY_ENGINE,
        r"^0 of \d+ pods use the schedule; pod \S+: ",
        _NONE,
    ),
    _schedule(
        "runtime plugin off",
        "the schedule was changed, and these engines take one at their start only",
        Reason.RUNTIME_PLUGIN_OFF,
        r"^\d+ of \d+ pods use the schedule; pod \S+: .*a change needs a restart of the pod",
        r"\d+/\d+",
    ),
    _schedule(
        "token refused",
        "pods refuse the operator's token; the mounted file brings the schedule",
        Reason.TOKEN_REFUSED,
        r"^\d+ of \d+ pods use the schedule; pod \S+: .*its mounted file brings the schedule",
        r"\d+/\d+",
    ),
    State(
        "operator cannot reach the pod",
        "no answer over HTTP; the mounted file brings the schedule, so the deployment stays Ready",
        _SERVES,
        _DONE,
        Standing("Unknown", Reason.POD_UNREACHABLE, "its mounted file brings the schedule"),
        _true(Reason.READY, r"^\d+ of \d+ pods serve"),
        (Reason.POD_UNREACHABLE,),
    ),
    _held_up(
        "quota exceeded",
        "the namespace's quota, a limit range, Pod Security or a webhook refuses the pods",
        Reason.POD_CREATION_FAILED,
        "pods cannot be created: .*(exceeded quota|forbidden)",
    ),
    _held_up(
        "foreign object in the way",
        "an object that is not ours has the name of a child",
        Reason.FOREIGN_OBJECT,
        r"^Deployment \S+: a Deployment of this name exists and is not ours",
    ),
    _held_up("spec invalid", "the operator cannot use the spec", Reason.INVALID_SPEC, r"^spec\."),
    _held_up(
        "child refused",
        "the API server refuses a child",
        Reason.APPLY_FAILED,
        r"^(ServiceAccount|ConfigMap|Service|Deployment) \S+: ",
    ),
    State(
        "API missing",
        "the spec asks for a kind that the cluster does not have, and that no pod needs",
        _SERVES,
        _DONE,
        _IN_USE,
        _false(Reason.API_MISSING, "this cluster has no PodMonitor"),
        (Reason.API_MISSING,),
    ),
    State(
        "claim not as asked",
        "the operator's own claim is there and can never become what `cache` says; pods use it as it is",
        _SERVES,
        _DONE,
        _IN_USE,
        _false(Reason.CACHE_NOT_AS_ASKED, r"^PersistentVolumeClaim \S+: "),
        (Reason.CACHE_NOT_AS_ASKED,),
    ),
    State(
        "synthetic acceptance",
        "pods serve in vLLM's benchmark mode, which makes the text up",
        _SERVES,
        _DONE,
        _IN_USE,
        _true(Reason.SYNTHETIC_ACCEPTANCE, "synthetic"),
        (Reason.SYNTHETIC_ACCEPTANCE,),
    ),
)
