"""An admission webhook of a test: over HTTPS, for one kind in one namespace, with an answer of the test's own."""

import base64
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tools.cluster.certificates import Authority

Json = dict[str, Any]
Answer = Callable[[Json], list[Json]]
"""From the object to the JSON patch of it."""

_OPERATIONS: Final = ("CREATE", "UPDATE")


def unchanged(_: Json) -> list[Json]:
    """Allow it as it is."""
    return []


class Webhook:
    """Allows everything, once its gate is open, and changes what `answer` says."""

    def __init__(self, directory: Path, answer: Answer = unchanged) -> None:
        directory.mkdir()
        authority = Authority(directory)
        authority.create()
        authority.issue("webhook", "webhook", addresses=["IP:127.0.0.1"])
        self.authority = authority.certificate("ca").read_bytes()
        self.answer = answer
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.webhook = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.certificate("webhook"), authority.key("webhook"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> "Webhook":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def configuration(
        self, namespace: str, plural: str, kind: str = "ValidatingWebhookConfiguration", group: str = ""
    ) -> Json:
        """For the objects of one kind in one namespace; of the core API, if no other group is named."""
        address = f"https://127.0.0.1:{self._server.server_address[1]}/"
        rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": list(_OPERATIONS), "resources": [plural]}
        hook = {
            "name": "test.dsd-operator.io",
            "clientConfig": {"url": address, "caBundle": base64.b64encode(self.authority).decode()},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 30,
        }
        identity = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
        return {**identity, "metadata": {"name": f"test-{namespace}"}, "webhooks": [hook]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    webhook: Webhook


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        webhook = self.server.webhook
        webhook.calls += 1
        webhook.gate.wait(60)
        answer: Json = {"uid": review["request"]["uid"], "allowed": True}
        patch = webhook.answer(review["request"]["object"])
        if patch:
            answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        kind = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        body = json.dumps({**kind, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence."""
