"""Requests to the API server over plain dicts, and through its proxy to engines. The only module that sends any.

Objects are plain dicts as the API server gives them: one of another version may say more than this command knows.
"""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from dsd_operator.render import labels
from dsd_operator.render.names import Names, names_for
from kubectl_dsd import api_errors, kinds
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.kubeconfig import TIMEOUT_SECONDS, Login, Target, log_in

Json = dict[str, Any]
Objects = list[Json]

FIELD_MANAGER: Final = "kubectl-dsd"
ENGINE_PORT: Final = 8000
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_PAGE: Final = 500
MOST_AT_ONCE: Final = 16
"""Requests in the air; engines are asked together."""

_SIMILAR: Final = 3


class Cluster:
    """One API server. `namespace` is the one that the command line or the context says."""

    def __init__(self, login: Login, timeout: float = TIMEOUT_SECONDS) -> None:
        self.login = login
        self.namespace = login.namespace
        self.timeout = timeout
        # One try: a person who waits for a wrong address should not wait four times.
        login.configuration.retries = urllib3.Retry(total=0, redirect=0, raise_on_status=False)
        login.configuration.connection_pool_maxsize = MOST_AT_ONCE
        self._api: Any = client.ApiClient(login.configuration)

    @classmethod
    def connect(cls, target: Target) -> "Cluster":
        """Read the kubeconfig; nothing is sent yet. Raises Failure."""
        return cls(log_in(target), target.timeout or TIMEOUT_SECONDS)

    # Objects

    def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """An object, None if there is none; raises ApiFailure."""
        try:
            return self._json("GET", kinds.path(kind, namespace, name), f"read {kinds.words(kind)}")
        except ApiFailure as failure:
            if failure.status == 404 and (failure.body or kind != kinds.DEPLOYMENT):
                return None
            raise self._kind_missing(kind, failure) from failure

    def list(self, kind: str, namespace: str | None, selector: str = "", fields: str = "") -> Objects:
        """All objects of a kind (namespace None: in all) that fit label and field selector; raises ApiFailure."""
        query: dict[str, str | int] = {"limit": _PAGE}
        query |= {key: text for key, text in (("labelSelector", selector), ("fieldSelector", fields)) if text}
        found: Objects = []
        while True:
            try:
                page = self._json("GET", kinds.path(kind, namespace), f"list {kinds.words(kind)}", query)
            except ApiFailure as failure:
                raise self._kind_missing(kind, failure) from failure
            found += page.get("items") or ()
            query["continue"] = (page.get("metadata") or {}).get("continue") or ""
            if not query["continue"]:
                return found

    def apply(self, manifest: Mapping[str, Any], *, force: bool = False, dry_run: bool = False) -> Json:
        """Server-side apply as `FIELD_MANAGER`; raises ApiFailure, status 409 where other managers own a field."""
        meta = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER, **({"force": "true"} if force else {}), **_dry(dry_run)}
        path = kinds.path(manifest["kind"], meta.get("namespace"), meta["name"])
        return self._json("PATCH", path, f"change {kinds.words(manifest['kind'])}", query, manifest, _APPLY)

    def patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """JSON merge patch as `FIELD_MANAGER`. With `metadata.resourceVersion` in `body` it fails (409) where the
        object has changed since; raises ApiFailure."""
        query = {"fieldManager": FIELD_MANAGER, **_dry(dry_run)}
        path = kinds.path(kind, namespace, name)
        return self._json("PATCH", path, f"change {kinds.words(kind)}", query, body, _MERGE)

    # DSDDeployments

    def deployment(self, name: str) -> Json:
        """A DSDDeployment of this namespace; raises Failure, with the names that are near, where there is none."""
        found = self.get(kinds.DEPLOYMENT, self.namespace, name)
        if found is None and self._namespace_is_missing():
            raise Failure(f"there is no namespace {self.namespace!r}", "`kubectl get namespaces` lists them; use -n.")
        if found is None:
            raise Failure(f"there is no DSDDeployment {name!r} in namespace {self.namespace!r}", self._near(name))
        return found

    def deployments(self, everywhere: bool = False) -> Objects:
        """All DSDDeployments of this namespace, or of all."""
        return self.list(kinds.DEPLOYMENT, None if everywhere else self.namespace)

    def pods(self, deployment: Mapping[str, Any]) -> Objects:
        """The pods of a DSDDeployment that answer, one for each engine, by name, dead ones included."""
        return self._pods(deployment, labels.selector)

    def workers(self, deployment: Mapping[str, Any]) -> Objects:
        """The other pods of its engines, where these span several nodes."""
        spans = ((deployment.get("spec") or {}).get("engine") or {}).get("nodes", 1) > 1
        return self._pods(deployment, labels.worker_labels) if spans else []

    def _pods(self, deployment: Mapping[str, Any], wanted: Callable[[Names], dict[str, str]]) -> Objects:
        meta = deployment["metadata"]
        found = self.list("Pod", meta["namespace"], labels.joined(wanted(names_for(meta["name"]))))
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def log(self, namespace: str, pod: str, container: str, *, previous: bool = False, lines: int = 60) -> str:
        """The end of a container's log, or of the one before its last restart; raises ApiFailure."""
        query = {"container": container, "tailLines": lines, "previous": "true" if previous else "false"}
        address = f"{kinds.path('Pod', namespace, pod, 'log')}?{urlencode(query)}"
        return self._send("GET", address, "read pods/log").decode(errors="replace")

    # Engines, through the API server's proxy

    def pod_get(self, namespace: str, pod: str, path: str, port: int = ENGINE_PORT, timeout: float = 12.0) -> bytes:
        """GET on a pod's port; raises ApiFailure. An engine itself waits 10 s for its cores, hence 12 s."""
        proxied = kinds.path("Pod", namespace, f"{pod}:{port}", "proxy" + path)
        return self._send("GET", proxied, f"reach pod {pod} through the API server (pods/proxy)", timeout=timeout)

    def engine_document(self, namespace: str, pod: str, path: str, timeout: float = 12.0) -> Json:
        """What an engine answers on one of the runtime's routes; raises ApiFailure."""
        content = self.pod_get(namespace, pod, path, timeout=timeout)
        try:
            found = json.loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "mode" not in found:
            raise ApiFailure(200, f"pod {pod} answers with something other than an engine's {path}")
        return found

    # The rest

    def _namespace_is_missing(self) -> bool:
        """Not known for sure where the person may not look."""
        try:
            return self.get("Namespace", None, self.namespace) is None
        except ApiFailure:
            return False

    def _near(self, name: str) -> str:
        """Where else it is, and what is spelled alike."""
        try:
            everywhere = self.list(kinds.DEPLOYMENT, None)
        except ApiFailure:
            everywhere = self.deployments()
        places = [found["metadata"] for found in everywhere]
        elsewhere = sorted(meta["namespace"] for meta in places if meta["name"] == name)
        if elsewhere:
            return f"There is one in namespace {', '.join(elsewhere)}: use -n {elsewhere[0]}."
        here = sorted(meta["name"] for meta in places if meta["namespace"] == self.namespace)
        if near := get_close_matches(name, here, _SIMILAR):
            return f"Did you mean {' or '.join(near)}?"
        if here:
            return f"There are: {', '.join(here[:20])}."
        others = sorted({meta["namespace"] for meta in places})
        return f"This namespace has none; there are some in {', '.join(others[:20])}." if others else "There are none."

    def _kind_missing(self, kind: str, failure: ApiFailure) -> ApiFailure:
        if failure.status == 404 and kind == kinds.DEPLOYMENT:
            return ApiFailure(404, api_errors.CRD_MISSING, api_errors.CRD_HINT)
        return failure

    def _json(
        self,
        verb: str,
        path: str,
        what: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        address = f"{path}?{urlencode(query)}" if query else path
        content = self._send(verb, address, what, body, content_type)
        try:
            decoded = json.loads(content)
        except ValueError:
            decoded = None
        if not isinstance(decoded, dict):
            raise Failure(f"{self.login.configuration.host} does not answer like an API server ({what})")
        return decoded

    def _send(
        self,
        verb: str,
        address: str,
        what: str,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        headers = {"Accept": "application/json, */*", "Content-Type": content_type}
        try:
            request = self._api.param_serialize(
                verb, address, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = self._api.call_api(*request, _request_timeout=timeout or self.timeout)
            content = bytes(response.read() or b"")
        except (urllib3.exceptions.HTTPError, ApiException, OSError, ValueError) as error:
            raise api_errors.no_answer(self.login.configuration.host, self.login.context, error) from error
        if response.status >= 300:
            raise api_errors.refusal(response.status, content, what, self.login.complaint)
        return content


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
