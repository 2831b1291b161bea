"""What makes and keeps the pods, in one form: a Deployment, or a LeaderWorkerSet where an engine spans several nodes.

Pure. `cluster.observe` collects the parts; `rollout` and `blockers` read the result. One replica is one engine: a pod,
or a group of pods whose leader answers.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.render import leader_worker_set as groups
from dsd_operator.status.pods import can_serve, has_been_ready, is_ready, name_of
from dsd_operator.status.readiness import ready_since

LACKING: Final = re.compile(r"StatefulSet (\S+) has \d+ of \d+")
"""The name in what is told of a StatefulSet that lacks pods, for who may read its Events."""

_TEMPLATE_HASH: Final = "pod-template-hash"

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Workload:
    """`live` is the object itself; the counts are of replicas.

    `current`: its controller has seen the latest spec, so the counts are about it.
    """

    live: Object
    current: bool
    replicas: int
    updated: int
    ready: int
    deadline_exceeded: bool = False
    settled: bool = False
    """Whether its latest roll-out is done: all replicas were ready once. What happens later is no part of it."""
    moved_at: str = ""
    """When it last got on (RFC 3339): its spec was changed, an engine became ready. Empty where its controller minds
    the deadline."""
    refusals: tuple[str, ...] = ()
    """Why pods cannot be made: a quota, a limit range, Pod Security or an admission webhook."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """By its name, what to say of each StatefulSet that has fewer pods than it should, if that lasts."""
    behind: frozenset[str] = frozenset()
    """Names of pods that were made from another description than the one that is asked for now."""

    @property
    def asked(self) -> int:
        """Replicas that it is to have."""
        return int(self.live["spec"].get("replicas", 1))

    @property
    def kind(self) -> str:
        """Deployment or LeaderWorkerSet."""
        return str(self.live["kind"])


def of_deployment(deployment: Object, replica_sets: Sequence[Object], pods: Sequence[Object]) -> Workload:
    """Its own counts, which are about the generation that it names; but what its controller, which may be late or away,
    still counts as ready serves only if a pod of it says so."""
    status, meta = deployment.get("status", {}), deployment["metadata"]
    reasons = {condition.get("reason") for condition in _conditions(deployment)}
    return Workload(
        live=deployment,
        current=status.get("observedGeneration", 0) >= meta.get("generation", 0),
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=min(status.get("readyReplicas", 0), sum(can_serve(pod) and is_ready(pod) for pod in pods)),
        deadline_exceeded="ProgressDeadlineExceeded" in reasons,
        settled="NewReplicaSetAvailable" in reasons,
        refusals=tuple(_refusals((deployment, *replica_sets))),
        behind=frozenset(_replaced(deployment, replica_sets, pods)),
    )


def of_groups(
    live: Object,
    stateful_set: Object | None,
    leaders: Sequence[Object],
    workers: Sequence[Object],
    worker_sets: Iterable[Object] = (),
) -> Workload:
    """Counted from the pods, not read from its status: that names no generation, so it may be about an earlier spec.

    `stateful_set` is the one that its controller made for the leaders, `worker_sets` those for the workers. There is
    no memory: a group that is made anew is one that starts for the first time. `deadline` counts from `moved_at`.
    """
    alive, at_work = ([pod for pod in pods if can_serve(pod)] for pods in (leaders, workers))
    behind = _older_groups(live, stateful_set, leaders)
    ready = Counter(groups.leader_of(worker) for worker in at_work if is_ready(worker))
    revision = groups.revision_of(stateful_set) if stateful_set else None
    current = stateful_set is not None and groups.taken_in(live, stateful_set)
    updated = sum(groups.revision_of(leader) == revision for leader in alive)
    return Workload(
        live=live,
        current=current,
        replicas=len(alive),
        updated=updated,
        ready=sum(_is_complete(leader, ready) for leader in alive),
        moved_at=max(_changed_at(live), *(ready_since(leader) for leader in alive), ""),
        settled=current and len(alive) == updated and all(has_been_ready(pod) for pod in (*alive, *at_work)),
        lacking=dict(_lacking((*([stateful_set] if stateful_set else []), *worker_sets), (*leaders, *workers))),
        behind=behind | {name_of(worker) for worker in workers if groups.leader_of(worker) in behind},
    )


def _lacking(stateful_sets: Iterable[Object], pods: Sequence[Object]) -> Iterable[tuple[str, str]]:
    """Those whose controller knows how few pods there are. Why it makes no more only its Events say, which are not ours
    to read: where a controller is late or away, the number that it counted is not the one that is."""
    for each in stateful_sets:
        meta, status, wanted = each["metadata"], each.get("status", {}), int(each["spec"].get("replicas", 1))
        there = sum(_is_made_by(pod, meta["uid"]) for pod in pods)
        knows = status.get("observedGeneration", 0) >= meta["generation"] and status.get("replicas", 0) == there
        if knows and there < wanted and not meta.get("deletionTimestamp"):
            name = meta["name"]
            yield name, f"StatefulSet {name} has {there} of {wanted}; `kubectl describe statefulset {name}` says why"


def _is_made_by(pod: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())


def _older_groups(live: Object, stateful_set: Object | None, leaders: Iterable[Object]) -> frozenset[str]:
    """Leaders of an earlier revision; all of them as long as the controller has not made the latest one."""
    made = stateful_set is not None and groups.made_from(live, stateful_set)
    newest = groups.revision_of(stateful_set) if stateful_set is not None and made else None
    return frozenset(name_of(leader) for leader in leaders if groups.revision_of(leader) != newest)


def _replaced(deployment: Object, replica_sets: Iterable[Object], pods: Iterable[Object]) -> Iterable[str]:
    """Pods of ReplicaSets whose template is another one. That is how the Deployment's controller finds its newest
    ReplicaSet; right after a change there is none."""
    older = {rs["metadata"]["uid"] for rs in replica_sets if _template(rs) != _template(deployment)}
    for pod in pods:
        if any(owner["uid"] in older for owner in pod["metadata"].get("ownerReferences") or ()):
            yield name_of(pod)


def _template(thing: Object) -> Object:
    """The pods' template without the mark that a ReplicaSet has of its own."""
    template = thing.get("spec", {}).get("template", {})
    metadata = template.get("metadata", {})
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != _TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _changed_at(live: Object) -> str:
    """When somebody last changed what is wanted of it; empty for what has never been stored."""
    meta = live["metadata"]
    entries = (e for e in meta.get("managedFields") or () if e.get("subresource") != "status")
    return max(str(meta.get("creationTimestamp") or ""), *(str(entry.get("time") or "") for entry in entries), "")


def _is_complete(leader: Object, ready_workers: Mapping[str, int]) -> bool:
    """An engine answers only with all of its workers; one that has just lost a worker may not know it yet."""
    return is_ready(leader) and ready_workers[leader["metadata"]["name"]] == groups.size_of(leader) - 1


def _refusals(objects: Iterable[Object]) -> Iterable[str]:
    for thing in objects:
        for condition in _conditions(thing):
            if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                yield str(condition.get("message", ""))


def _conditions(thing: Object) -> Sequence[Object]:
    return thing.get("status", {}).get("conditions") or []
