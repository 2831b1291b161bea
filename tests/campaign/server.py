"""Plain requests to an API server as the administrator: hundreds of objects at a time, many requests side by side."""

import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import httpx
from kubernetes import client, config

from dsd_operator.api.constants import API_VERSION, KIND
from dsd_operator.cluster import resources
from dsd_operator.cluster.resources import DSD_DEPLOYMENT, Resource
from dsd_operator.render.names import names_for

Json = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")

_MANAGER: Final = "user"
_APPLY: Final = "application/apply-patch+yaml"
_TYPED: Final = "failed to create typed patch object"
_THREADS: Final = 8
_NOT_CHILDREN: Final = frozenset({KIND, "ReplicaSet", "Pod", "Event"})

KINDS: Final = tuple(
    found for found in vars(resources).values() if isinstance(found, Resource) and found.kind not in _NOT_CHILDREN
)
"""Every kind that the operator makes."""


@dataclass(frozen=True)
class Answer:
    """What the server said to a write."""

    status: int
    body: Json

    @property
    def refused(self) -> bool:
        """Whether the server did not take it."""
        return self.status >= 400

    @property
    def failed(self) -> bool:
        """Whether it was not the spec that the server had something against. It tells a value of another type in a
        patch with the code of its own failures."""
        return self.refused and self.status not in (400, 422) and _TYPED not in self.message

    @property
    def message(self) -> str:
        """Why not."""
        return str(self.body.get("message", "")) if self.refused else ""


class Server:
    """One namespace of one API server."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        loaded = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=loaded)
        trust = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
        trust.load_cert_chain(loaded.cert_file, loaded.key_file)
        self._client = httpx.Client(
            base_url=loaded.host,
            verify=trust,
            trust_env=False,
            timeout=60,
            limits=httpx.Limits(max_connections=_THREADS),
        )
        self._pool = ThreadPoolExecutor(_THREADS)

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        self._client.close()

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """The work for each item, several at a time, in order."""
        return list(self._pool.map(work, items))

    def apply(self, name: str, spec: Json, dry: bool = False) -> Answer:
        """Apply a DSDDeployment as a user of server-side apply does; `dry`: only ask."""
        meta = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}
        query = {"fieldManager": _MANAGER, "force": "true", **({"dryRun": "All"} if dry else {})}
        path, headers = DSD_DEPLOYMENT.path(self.namespace, name), {"Content-Type": _APPLY}
        found = self._client.patch(path, params=query, json=body, headers=headers)
        return Answer(found.status_code, found.json())

    def delete(self, name: str) -> None:
        """Delete a DSDDeployment, and its Service before the garbage collector comes to it: it may hold a node port."""
        for kind, called in ((DSD_DEPLOYMENT, name), (resources.SERVICE, names_for(name).base)):
            answer = self._client.delete(kind.path(self.namespace, called))
            if answer.status_code != httpx.codes.NOT_FOUND:
                answer.raise_for_status()

    def deployments(self) -> list[Json]:
        """Every DSDDeployment."""
        return self._list(DSD_DEPLOYMENT)

    def children(self) -> dict[str, list[Json]]:
        """All that has a DSDDeployment as its controller, by the owner's uid."""
        found: dict[str, list[Json]] = {}
        for kind, things in zip(KINDS, self.each(self._list, KINDS), strict=True):
            for thing in things:
                for owner in thing["metadata"].get("ownerReferences", ()):
                    found.setdefault(owner["uid"], []).append({**thing, "kind": kind.kind})
        return found

    def _list(self, kind: Resource) -> list[Json]:
        answer = self._client.get(kind.path(self.namespace))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        return [{"kind": kind.kind, **item} for item in answer.raise_for_status().json()["items"]]
