"""The few requests this package itself makes to an API server, as the administrator."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from tools.cluster.certificates import Authority

_TIMEOUT_SECONDS = 3


class ApiClient:
    """Reads from one API server, never through a proxy."""

    def __init__(self, server: str, authority: Authority) -> None:
        context = ssl.create_default_context(cafile=str(authority.certificate("ca")))
        context.load_cert_chain(authority.certificate("admin"), authority.key("admin"))
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self._server = server

    def get(self, path: str) -> Any | None:
        """The decoded answer to a GET (text where it is not JSON); None if the answer is not 200 or none came."""
        try:
            with self._opener.open(self._server + path, timeout=_TIMEOUT_SECONDS) as response:
                body = response.read().decode()
        except (OSError, urllib.error.URLError, http.client.HTTPException):
            return None
        try:
            return json.loads(body)
        except ValueError:
            return body

    def ready(self) -> bool:
        """Whether the API server says that it is ready."""
        return self.get("/readyz") is not None

    def has_default_service_account(self) -> bool:
        """Whether the controllers have begun: pods can be created in the default namespace."""
        return self.get("/api/v1/namespaces/default/serviceaccounts/default") is not None

    def node_ready(self, name: str) -> bool:
        """Whether the node's kubelet reports Ready."""
        node = self.get(f"/api/v1/nodes/{name}")
        conditions = node["status"].get("conditions", []) if isinstance(node, dict) else []
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
