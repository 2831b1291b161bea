"""Asks engines for their status, all at once, and says why one cannot be asked.

The way is the API server's proxy, so a NetworkPolicy that lets the operator in may still shut this command out: the
answer then names the policy. An engine that cannot be asked is no fault of the deployment.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.status.pods import can_serve, is_up, name_of
from dsd_runtime.protocol import STATUS_PATH
from kubectl_dsd.cluster import MOST_AT_ONCE, Cluster, Json, Objects
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.policies import ingress_policies

_BLOCKED: Final = ("i/o timeout", "timed out", "timeout", "deadline exceeded", "no route to host", "reset by peer")
"""What a dropped or refused connection looks like from the API server. A refused one means that nothing listens yet."""


@dataclass(frozen=True)
class Asked:
    """One pod and what its engine said: `status`, else `problem` in a sentence. `forbidden`: for lack of a right."""

    pod: Json
    status: Json | None = None
    problem: str = ""
    forbidden: bool = False
    policy: str = ""
    """The NetworkPolicy that is in the way."""

    @property
    def name(self) -> str:
        """The pod's."""
        return name_of(self.pod)


def ask_engines(cluster: Cluster, pods: Sequence[Json], path: str = STATUS_PATH, timeout: float = 12.0) -> list[Asked]:
    """Every pod, in order, with what its engine answers on a route of the runtime where it can be asked.

    `timeout` in seconds; an engine waits 10 s for its cores before it gives up.
    """

    def answer(pod: Json) -> Json:
        return cluster.engine_document(pod["metadata"]["namespace"], name_of(pod), path, timeout)

    with ThreadPoolExecutor(max_workers=MOST_AT_ONCE) as pool:
        asked = list(pool.map(lambda pod: _ask(answer, pod), pods))
    if not any(found.problem and _looks_blocked(found.problem) for found in asked):
        return asked
    policies = _policies(cluster, pods)
    return [_with_policy(found, policies) for found in asked]


def _ask(answer: Callable[[Json], Json], pod: Json) -> Asked:
    reason = _no_engine_yet(pod)
    if reason:
        return Asked(pod, problem=reason)
    try:
        return Asked(pod, answer(pod))
    except ApiFailure as failure:
        return Asked(pod, problem=_words(failure), forbidden=failure.status == 403 and bool(failure.body))
    except Failure as failure:
        return Asked(pod, problem=failure.message)


def _no_engine_yet(pod: Mapping[str, Any]) -> str:
    """Why there is no use in asking, empty where there is."""
    if not can_serve(pod):
        deleted = pod["metadata"].get("deletionTimestamp")
        return "it is being deleted" if deleted else f"it has ended ({(pod.get('status') or {}).get('phase')})"
    if not (pod.get("status") or {}).get("podIP"):
        return "it has no address yet"
    return ""


def _words(failure: ApiFailure) -> str:
    """Why an engine gave no status. The API server's proxy answers with its own Status, all else is the pod's."""
    text = str(failure.body.get("message") or failure.message)
    if failure.status == 403 and failure.body:
        return f"you may not ask it: the right to get pods/proxy is missing ({text})"
    if failure.status in (404, 405) and not failure.body:
        return "its server has no DSD routes: it does not run the DSD runtime, or not this path"
    if failure.status == 0:
        return "no answer through the API server (timed out)"
    if "connection refused" in text:
        return "its engine does not listen yet"
    if failure.status == 503 and not failure.body:
        return "its engine does not answer within 10 s"
    reason = text.rpartition("error trying to reach service: ")[2]
    return f"the API server cannot reach it: {reason}"


def _looks_blocked(problem: str) -> bool:
    return any(sign in problem for sign in _BLOCKED)


def _policies(cluster: Cluster, pods: Sequence[Json]) -> Objects:
    try:
        return cluster.list("NetworkPolicy", pods[0]["metadata"]["namespace"])
    except Failure:
        return []


def _with_policy(found: Asked, policies: Objects) -> Asked:
    names = ingress_policies(policies, found.pod)
    if not names or not _looks_blocked(found.problem):
        return found
    listed = ", ".join(names)
    return Asked(
        found.pod,
        problem=f"blocked by the NetworkPolicy {listed}, as it seems: {found.problem}",
        policy=listed,
    )


def ready_word(pod: Mapping[str, Any]) -> str:
    """`1/1` as kubectl shows it."""
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    total = len((pod.get("spec") or {}).get("containers") or ())
    return f"{sum(bool(state.get('ready')) for state in states)}/{total}"


def serves(pod: Mapping[str, Any]) -> bool:
    """Whether it counts and is ready."""
    return can_serve(pod) and is_up(pod)
