"""Raw objects as the API server returns them, for the tests of status."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dsd_operator.status.observed import ApplyFailure, Observed, Outcome, PushResult, PushState
from dsd_operator.status.workload import of_deployment
from dsd_runtime.protocol import EngineStatus, Envelope, Revision, ScheduleState, Versions
from dsd_runtime.schedule import Problem, schedule_hash
from tests.unit.resources import resource

NOW: Final = "2030-01-01T00:00:00Z"
RANGES: Final = resource().spec.schedule
HASH: Final = schedule_hash(RANGES)
REVISION: Final = Revision(owner="o", number=7)


def deployment(
    replicas: int = 1, updated: int = 1, ready: int = 1, behind: bool = False, conditions: Sequence[Any] = ()
) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {"name": "demo", "generation": 2},
        "status": {
            "observedGeneration": 1 if behind else 2,
            "replicas": replicas,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "conditions": list(conditions),
        },
    }


def pod(name: str = "demo-1", ready: bool = True, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions, **status},
    }


def waiting(name: str, reason: str, message: str = "", last: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A container's status: waiting, after `last` if it ran before."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": name, "ready": False, "state": state, "lastState": {"terminated": last} if last else {}}


def answer(method: str = "ngram", hash_: str = HASH, mode: str = "on", **envelope: Any) -> EngineStatus:
    resolved = {"method": method, "model_runner": "V1", "num_speculative_tokens": 3, "max_num_seqs": 256, **envelope}
    return EngineStatus.model_validate(
        {
            "mode": mode,
            "versions": Versions(runtime="0.1", vllm="0.32.0"),
            "envelope": Envelope(**resolved),
            "schedule": ScheduleState(hash=hash_, source="http", ranges=RANGES),
        }
    )


def push(
    pod_name: str = "demo-1", state: PushState = PushState.APPLIED, message: str = "", **fields: Any
) -> PushResult:
    return PushResult(pod_name, state, message, **fields)


def outcome(
    pushes: Iterable[PushResult] = (),
    problems: Iterable[Problem] = (),
    failures: Iterable[ApplyFailure] = (),
    rendered: bool = True,
) -> Outcome:
    revision, wanted = (REVISION, HASH) if rendered else (None, None)
    return Outcome(revision, wanted, tuple(problems), tuple(failures), tuple(pushes))


def observed(
    live: Mapping[str, Any] | None = None,
    pods: Iterable[Mapping[str, Any]] = (),
    replica_sets: Sequence[Mapping[str, Any]] = (),
    **fields: Any,
) -> Observed:
    """What is there: the Deployment `live` with its ReplicaSets, and pods."""
    there = tuple(pods)
    workloads = () if live is None else (of_deployment(live, replica_sets, there),)
    return Observed(workloads=workloads, pods=there, **{"config_map": None, **fields})
