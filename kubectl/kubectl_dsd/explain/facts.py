"""Everything that the checks look at, asked for once. What may not be read is noted, and stops nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from dsd_operator.render.names import names_for
from dsd_operator.status.pods import can_serve, is_ready, name_of
from dsd_operator.status.reasons import Reason
from dsd_operator.status.workload import LACKING
from kubectl_dsd.ages import parse
from kubectl_dsd.cluster import Cluster, Json, Objects
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.explain import operators
from kubectl_dsd.pod_view import PodView, pod_views
from kubectl_dsd.reach import Asked, ask_engines
from kubectl_dsd.wanted import Schedule, schedule_of

T = TypeVar("T")

OPERATOR_LABEL: Final = "app.kubernetes.io/name=dsd-operator"
_PODS_WITH_EVENTS: Final = 5
"""Events of so many pods that are not ready are read; the others have the same trouble, or none."""


@dataclass
class Facts:
    """One deployment and what stands around it. None, or an entry in `unseen`: it could not be read."""

    deployment: Json
    child: Json | None = None
    replica_sets: Objects = field(default_factory=list)
    pods: list[PodView] = field(default_factory=list)
    workers: list[PodView] = field(default_factory=list)
    """The other pods of engines over several nodes: nobody can ask them, and an engine needs them all."""
    events: Objects = field(default_factory=list)
    policies: Objects = field(default_factory=list)
    quotas: Objects = field(default_factory=list)
    budgets: Objects = field(default_factory=list)
    """PodDisruptionBudgets of the namespace, whosever they are."""
    nodes: Objects | None = None
    operators: Objects | None = None
    operator_pods: Objects = field(default_factory=list)
    operator_namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of the namespaces in which the responsible operators are."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """Pod -> the end of what its engine logged before it crashed, where the kubelet kept no last words."""
    wanted: Schedule | None = None
    unseen: list[str] = field(default_factory=list)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def meta(self) -> Mapping[str, Any]:
        """The resource's."""
        found: Mapping[str, Any] = self.deployment["metadata"]
        return found

    @property
    def spec(self) -> Mapping[str, Any]:
        """The resource's."""
        return self.deployment.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """The operator's word."""
        return self.deployment.get("status") or {}

    @property
    def current(self) -> bool:
        """Whether that is about the spec as it is now."""
        return bool(self.status) and self.status.get("observedGeneration") == self.meta.get("generation")

    def condition(self, kind: str) -> Mapping[str, Any]:
        """A condition, empty where there is none."""
        return next((c for c in self.status.get("conditions") or () if c.get("type") == kind), {})

    @property
    def lacking(self) -> str:
        """The StatefulSet of a group that has too few pods, by the operator's word; empty where none has."""
        found = LACKING.search(str(self.condition("Ready").get("message") or ""))
        return found[1] if found else ""

    def responsible(self) -> Objects:
        """The operators that watch the resource's namespace, running or not; none where they cannot be seen."""
        return operators.responsible(self.operators or (), self.meta["namespace"])

    def responsible_pods(self) -> Objects:
        """Their pods."""
        return operators.pods_of(self.responsible(), self.operator_pods)

    def waiting(self) -> list[PodView]:
        """Pods that count and are not ready."""
        everybody = (*self.pods, *self.workers)
        return [view for view in everybody if can_serve(view.pod) and not is_ready(view.pod)]

    def changed_seconds_ago(self) -> float:
        """Since the spec last changed, by `managedFields`; the operator needs a moment."""
        times = [
            parse(entry.get("time"))
            for entry in self.meta.get("managedFields") or ()
            if "f:spec" in (entry.get("fieldsV1") or {})
        ]
        known = [time for time in (*times, parse(self.meta.get("creationTimestamp"))) if time is not None]
        return (self.now - max(known)).total_seconds() if known else float("inf")


def gather(cluster: Cluster, deployment: Json) -> Facts:
    """Ask for everything; raises Failure only where nothing can be read at all."""
    facts = Facts(deployment)
    namespace, name = deployment["metadata"]["namespace"], names_for(deployment["metadata"]["name"]).base
    ask = _Asker(facts.unseen)
    facts.wanted = ask(lambda: schedule_of(deployment), None)
    facts.child = ask(lambda: cluster.get("Deployment", namespace, name), None)
    facts.replica_sets = ask(lambda: _owned(cluster.list("ReplicaSet", namespace), facts.child), [])
    facts.policies = ask(lambda: cluster.list("NetworkPolicy", namespace), [])
    facts.budgets = ask(lambda: cluster.list("PodDisruptionBudget", namespace), [])
    facts.quotas = ask(lambda: cluster.list("ResourceQuota", namespace), [])
    pods: Objects = ask(lambda: cluster.pods(deployment), [])
    facts.pods = pod_views(deployment, facts.wanted or Schedule(()), ask_engines(cluster, pods))
    workers: Objects = ask(lambda: cluster.workers(deployment), [])
    facts.workers = [PodView(pod, Asked(pod), None) for pod in workers]
    facts.events = _events(cluster, facts, ask)
    facts.logs = {view.name: text for view in facts.waiting() if (text := _log(cluster, view, ask))}
    if any(_unschedulable(view) for view in facts.waiting()):
        facts.nodes = ask(lambda: cluster.list("Node", None), None)
    _look_for_operator(cluster, facts, ask)
    return facts


class _Asker:
    """Asks, and notes what may not be read."""

    def __init__(self, unseen: list[str]) -> None:
        self._unseen = unseen

    def __call__(self, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except ApiFailure as failure:
            if failure.status == 0:
                raise  # the API server is gone; all other answers would be the same
            self._unseen.append(failure.message)
        except Failure as failure:
            self._unseen.append(failure.message)
        return otherwise


def _owned(sets: Objects, child: Json | None) -> Objects:
    """The ReplicaSets of the Deployment that are in use."""
    uid = child["metadata"]["uid"] if child else None
    return [
        found
        for found in sets
        if any(owner.get("uid") == uid for owner in found["metadata"].get("ownerReferences") or ())
        and (found.get("spec") or {}).get("replicas")
    ]


def _events(cluster: Cluster, facts: Facts, ask: _Asker) -> Objects:
    """Events about the resource, its children and the pods that are not ready; the newest last."""
    children = [thing["metadata"]["name"] for thing in (facts.child, *facts.replica_sets) if thing]
    waiting = [view.name for view in facts.waiting()[:_PODS_WITH_EVENTS]]
    found: Objects = []
    for name in dict.fromkeys(filter(None, (facts.meta["name"], *children, facts.lacking, *waiting))):
        about = f"involvedObject.name={name}"
        found += ask(partial(cluster.list, "Event", facts.meta["namespace"], fields=about), [])
    return sorted(found, key=event_time)


def event_time(event: Mapping[str, Any]) -> str:
    """When an event was last seen, in whichever of its fields says so."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((time for time in times if time), event["metadata"].get("creationTimestamp") or ""))


def _log(cluster: Cluster, view: PodView, ask: _Asker) -> str:
    """The end of the last run's log of a container that crashed and left no words."""
    for state in (view.pod.get("status") or {}).get("containerStatuses") or ():
        ended = (state.get("lastState") or {}).get("terminated") or (state.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode") and not ended.get("message"):
            previous = bool((state.get("lastState") or {}).get("terminated"))
            read = partial(cluster.log, view.pod["metadata"]["namespace"], view.name, str(state["name"]))
            return ask(partial(read, previous=previous), "")
    return ""


def _unschedulable(view: PodView) -> bool:
    conditions = (view.pod.get("status") or {}).get("conditions") or ()
    return any(c.get("reason") == Reason.UNSCHEDULABLE.value for c in conditions)


def _look_for_operator(cluster: Cluster, facts: Facts, ask: _Asker) -> None:
    """The operator's own Deployment and pods, wherever they are."""
    facts.operators = ask(lambda: cluster.list("Deployment", None, OPERATOR_LABEL), None)
    if facts.operators:
        facts.operator_pods = ask(lambda: cluster.list("Pod", None, OPERATOR_LABEL), [])
    names = {operator["metadata"]["namespace"] for operator in facts.responsible()}
    facts.operator_namespaces = {name: _labels(cluster, name, ask) for name in sorted(names)}


def _labels(cluster: Cluster, namespace: str, ask: _Asker) -> Mapping[str, str]:
    """A namespace's labels; the one that each has where they may not be read."""
    found = ask(lambda: cluster.get("Namespace", None, namespace), None) or {"metadata": {}}
    return {"kubernetes.io/metadata.name": namespace, **(found["metadata"].get("labels") or {})}


def pod_object(view: PodView) -> str:
    """How a finding names a pod."""
    return f"Pod {name_of(view.pod)}"
