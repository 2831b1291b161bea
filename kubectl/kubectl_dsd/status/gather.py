"""What `status` knows of one deployment: the resource, its pods, and what their engines say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsd_operator.status.pods import can_serve
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.pod_view import PodView, pod_views
from kubectl_dsd.reach import ask_engines
from kubectl_dsd.wanted import Schedule, schedule_of


@dataclass(frozen=True)
class Overview:
    """One deployment at one moment."""

    deployment: Json
    wanted: Schedule
    pods: tuple[PodView, ...]

    @property
    def status(self) -> Mapping[str, Any]:
        """The operator's word, empty while there is none."""
        return self.deployment.get("status") or {}

    def notes(self) -> Iterator[str]:
        """What the operator has not seen or said yet."""
        generation, seen = self.deployment["metadata"].get("generation"), self.status.get("observedGeneration")
        if not self.status:
            yield (
                "the operator has said nothing about it: it does not run, does not watch this namespace, or needs "
                "another second (kubectl dsd explain looks)"
            )
        elif generation != seen:
            yield f"the operator has not worked on generation {generation} yet; conditions are about generation {seen}"
        if any(pod.asked.forbidden for pod in self.pods):
            yield "engines were not asked: you have no right to get pods/proxy here; the operator's word is shown"

    def counted(self) -> list[PodView]:
        """Pods that can serve: those that have ended or are being deleted need no schedule."""
        return [pod for pod in self.pods if can_serve(pod.pod)]

    def using(self) -> int:
        """How many of them use the wanted schedule."""
        return sum(pod.in_sync is True for pod in self.counted())

    def late(self) -> list[PodView]:
        """Those that are not known to use it."""
        return [pod for pod in self.counted() if pod.in_sync is not True]

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        return {
            **summary(self.deployment),
            "schedule": {
                **self.wanted.data(),
                "podsApplied": self.using(),
                "podsTotal": len(self.counted()),
            },
            "pods": [pod.data() for pod in self.pods],
            "outOfSync": [{"pod": pod.name, "why": pod.why} for pod in self.late()],
            "notes": list(self.notes()),
        }


def overview(cluster: Cluster, deployment: Json) -> Overview:
    """Look at everything once; raises Failure."""
    wanted = schedule_of(deployment)
    asked = ask_engines(cluster, cluster.pods(deployment))
    return Overview(deployment, wanted, tuple(pod_views(deployment, wanted, asked)))


def summary(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """What the resource alone says, as `-o json` shows it."""
    meta, spec, status = deployment["metadata"], deployment.get("spec") or {}, deployment.get("status") or {}
    drafter = spec.get("drafter") or {}
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "model": (spec.get("model") or {}).get("name"),
        "method": drafter.get("method"),
        "maxSpeculativeTokens": drafter.get("numSpeculativeTokens"),
        "generation": meta.get("generation"),
        "observedGeneration": status.get("observedGeneration"),
        "creationTimestamp": meta.get("creationTimestamp"),
        "replicas": {
            "wanted": spec.get("replicas", 1),
            "existing": status.get("replicas"),
            "ready": status.get("readyReplicas"),
            "updated": status.get("updatedReplicas"),
        },
        "url": status.get("url"),
        "conditions": [
            {key: condition.get(key) for key in ("type", "status", "reason", "message", "lastTransitionTime")}
            for condition in status.get("conditions") or ()
        ],
    }
