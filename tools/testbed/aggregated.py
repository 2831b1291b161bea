"""An API that a process on this machine serves behind the API server (aggregation), for `tools.metrics_adapter` and
`tools.keda`.

In a cluster the API server finds such a process by a Service; here the Service is a name for this machine's loopback.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.cluster import shell
from tools.cluster.api import kubectl
from tools.cluster.errors import ClusterError
from tools.cluster.waiting import poll

_START_SECONDS: Final = 60.0


@dataclass(frozen=True)
class AggregatedApi:
    """One API group. `name` is what its Service is called, `namespace` where that is."""

    name: str
    group: str
    versions: Sequence[str]
    namespace: str = "default"

    @contextmanager
    def served(self, kubeconfig: Path, port: int, failure: Callable[[], str]) -> Iterator[None]:
        """Pass the group on to this port of the loopback; its API is served inside the block.

        `failure` says why the process behind it cannot serve, nothing as long as it may. ClusterError if it is not
        served in time, or failed in the end.
        """
        manifests = {"apiVersion": "v1", "kind": "List", "items": self._manifests(port)}
        try:
            _kubectl(kubeconfig, "apply", "-f", "-", given=json.dumps(manifests))
            if not poll(lambda: bool(failure()) or self._answers(kubeconfig), _START_SECONDS) or failure():
                raise ClusterError(f"{self.group} is not served: {failure() or 'no answer'}")
            yield
            if failure():
                raise ClusterError(f"{self.group} is served no more: {failure()}")
        finally:
            self._remove(kubeconfig)

    def _manifests(self, port: int) -> list[dict[str, Any]]:
        """The name of this machine's loopback, and the API versions that are served there."""
        meta = {"name": self.name, "namespace": self.namespace}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        return [service, *(self._version(version, {**meta, "port": port}) for version in self.versions)]

    def _version(self, version: str, backend: dict[str, Any]) -> dict[str, Any]:
        priority = {"groupPriorityMinimum": 100, "versionPriority": 100}
        spec = {"group": self.group, "version": version, "service": backend, "insecureSkipTLSVerify": True, **priority}
        meta = {"name": f"{version}.{self.group}"}
        return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta, "spec": spec}

    def _answers(self, kubeconfig: Path) -> bool:
        path = f"/apis/{self.group}/{self.versions[-1]}"
        return shell.succeeds([kubectl(), "--kubeconfig", kubeconfig, "get", "--raw", path])

    def _remove(self, kubeconfig: Path) -> None:
        # An API that nobody serves would break the deletion of every namespace.
        names = [f"apiservice/{version}.{self.group}" for version in self.versions]
        _kubectl(kubeconfig, "delete", "--ignore-not-found", *names)
        _kubectl(kubeconfig, "delete", "--ignore-not-found", "--namespace", self.namespace, f"service/{self.name}")


def _kubectl(kubeconfig: Path, *arguments: str, given: str | None = None) -> None:
    shell.run([kubectl(), "--kubeconfig", kubeconfig, *arguments], stdin=given)
