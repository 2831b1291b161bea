"""A small client of the API server over plain dicts, for tests and benchmarks.

Wraps the dynamic client of `kubernetes`; a missing object is None, every other refusal raises its ApiException.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config, dynamic
from kubernetes.client.exceptions import ApiException

from tools.testbed.waiting import wait_for

Json = dict[str, Any]

FIELD_MANAGER: Final = "dsd-testbed"

API_VERSIONS: Final[Mapping[str, str]] = {
    "Namespace": "v1",
    "Node": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "ConfigMap": "v1",
    "Event": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ControllerRevision": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "NetworkPolicy": "networking.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "Secret": "v1",
    "StatefulSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "InferencePool": "inference.networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "DSDDeployment": "dsd-operator.io/v1alpha1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "Prometheus": "monitoring.coreos.com/v1",
}
"""The kinds that tests and benchmarks touch, each with the version they speak."""


class Kube:
    """One cluster. Names are given as (kind, namespace, name); cluster-scoped kinds take None as namespace."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = config.new_client_from_config(str(kubeconfig))
        self._core = client.CoreV1Api(self._api)
        self._dynamic: Any = None

    def _resource(self, kind: str) -> Any:
        if self._dynamic is None:
            self._dynamic = dynamic.DynamicClient(self._api)
        return self._dynamic.resources.get(api_version=API_VERSIONS[kind], kind=kind)

    def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """The object, or None when it does not exist."""
        try:
            found: Json = self._resource(kind).get(namespace=namespace, name=name).to_dict()
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return found

    def list(self, kind: str, namespace: str | None, selector: str = "") -> "list[Json]":
        """All objects of `kind` that match the label selector."""
        found = self._resource(kind).get(namespace=namespace, label_selector=selector or None)
        return list(found.to_dict()["items"])

    def apply(self, manifest: Json) -> Json:
        """Server-side apply with force; creates what is missing."""
        resource = self._resource(manifest["kind"])
        namespace = manifest["metadata"].get("namespace")
        applied: Json = resource.server_side_apply(
            body=manifest, namespace=namespace, field_manager=FIELD_MANAGER, force_conflicts=True
        ).to_dict()
        return applied

    def patch(self, kind: str, namespace: str | None, name: str, body: Json) -> Json:
        """JSON merge patch; returns the object as the API server answered it."""
        patched: Json = (
            self._resource(kind)
            .patch(body=body, name=name, namespace=namespace, content_type="application/merge-patch+json")
            .to_dict()
        )
        return patched

    def delete(self, kind: str, namespace: str | None, name: str, **options: Any) -> None:
        """Ask for deletion; an object that is already gone is fine. `options` are DeleteOptions."""
        try:
            self._resource(kind).delete(name=name, namespace=namespace, body=options or None)
        except ApiException as error:
            if error.status != 404:
                raise

    def remove_namespace(self, name: str, timeout: float) -> None:
        """Delete a namespace unless that has begun already, and wait until it is gone."""
        found = self.get("Namespace", None, name)
        if found and "deletionTimestamp" not in found["metadata"]:
            self.delete("Namespace", None, name)
        wait_for(
            f"namespace {name} to be gone", lambda: self.get("Namespace", None, name), lambda n: n is None, timeout
        )

    def scale(self, namespace: str, deployment: str, replicas: int) -> None:
        """Set the replicas of a Deployment."""
        self.patch("Deployment", namespace, deployment, {"spec": {"replicas": replicas}})

    def version(self) -> str:
        """The API server's version."""
        return str(client.VersionApi(self._api).get_code().git_version)

    def logs(self, namespace: str, pod: str, container: str | None = None, tail: int = 60) -> str:
        """The last `tail` lines of a container's log, or why there are none."""
        try:
            text: str = self._core.read_namespaced_pod_log(pod, namespace, container=container, tail_lines=tail)
        except ApiException as error:
            return f"(no log: {error.reason})"
        return text

    def token(self, namespace: str, service_account: str, audience: str) -> str:
        """A short-lived token of a service account for one audience (TokenRequest)."""
        request = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[audience], expiration_seconds=600)
        )
        answer = self._core.create_namespaced_service_account_token(service_account, namespace, request)
        return str(answer.status.token)
