"""The kinds that the operator touches, and their addresses. Known in advance: no discovery, so that an aggregated API
that is down can never keep the operator from starting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import constants


@dataclass(frozen=True)
class Resource:
    """One namespaced kind."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (all namespaces without one), an object, or a part of it."""
        root = "/api" if self.api_version == "v1" else "/apis"
        parts = [root, self.api_version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        return "/".join(p for p in (*parts, self.plural, name, subresource) if p is not None)


DSD_DEPLOYMENT: Final = Resource(constants.API_VERSION, constants.KIND, constants.PLURAL)
SERVICE_ACCOUNT: Final = Resource("v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP: Final = Resource("v1", "ConfigMap", "configmaps")
SERVICE: Final = Resource("v1", "Service", "services")
DEPLOYMENT: Final = Resource("apps/v1", "Deployment", "deployments")
REPLICA_SET: Final = Resource("apps/v1", "ReplicaSet", "replicasets")
CONTROLLER_REVISION: Final = Resource("apps/v1", "ControllerRevision", "controllerrevisions")
STATEFUL_SET: Final = Resource("apps/v1", "StatefulSet", "statefulsets")
LEADER_WORKER_SET: Final = Resource("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
POD: Final = Resource("v1", "Pod", "pods")
CLAIM: Final = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
POD_MONITOR: Final = Resource("monitoring.coreos.com/v1", "PodMonitor", "podmonitors")
POD_DISRUPTION_BUDGET: Final = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY: Final = Resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
HORIZONTAL_POD_AUTOSCALER: Final = Resource("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
INFERENCE_POOL: Final = Resource("inference.networking.k8s.io/v1", "InferencePool", "inferencepools")
HTTP_ROUTE: Final = Resource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
EVENT: Final = Resource("events.k8s.io/v1", "Event", "events")

APPLIED: Final = (SERVICE_ACCOUNT, CONFIG_MAP, SERVICE, DEPLOYMENT)
"""What the operator creates for each DSDDeployment; a LEADER_WORKER_SET instead of the Deployment for engines that span
several nodes."""

EXTRA: Final = (
    CLAIM,
    POD_MONITOR,
    POD_DISRUPTION_BUDGET,
    NETWORK_POLICY,
    INFERENCE_POOL,
    HTTP_ROUTE,
)
"""What it creates where it is wanted, and deletes where it is not (`render.extras`)."""

WATCHED: Final = (
    DEPLOYMENT,
    POD,
    SERVICE,
    CONFIG_MAP,
    SERVICE_ACCOUNT,
    CLAIM,
    POD_DISRUPTION_BUDGET,
    NETWORK_POLICY,
)
"""The kinds of children that are watched (`handlers.watch`). No ReplicaSets: what goes wrong there is a condition of
the Deployment. No kinds that a cluster may not have: kopf ends where one of its watches finds none."""

_BY_KIND: Final = {
    (r.api_version, r.kind): r for r in (*APPLIED, CONTROLLER_REVISION, LEADER_WORKER_SET, *EXTRA, DSD_DEPLOYMENT)
}


def resource_of(manifest: Mapping[str, Any]) -> Resource:
    """The kind of a manifest; KeyError for one that the operator never applies."""
    return _BY_KIND[manifest["apiVersion"], manifest["kind"]]
