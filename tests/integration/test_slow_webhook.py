"""An admission webhook that takes its time over the ConfigMap holds up neither this schedule nor the next one."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.world import SECOND, THIRD, World
from tools.cluster.certificates import Authority
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


class Webhook:
    """Allows everything, once its gate is open."""

    def __init__(self, directory: Path) -> None:
        authority = Authority(directory)
        authority.create()
        authority.issue("webhook", "webhook", addresses=["IP:127.0.0.1"])
        self.authority = authority.certificate("ca").read_bytes()
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

    def configuration(self, namespace: str) -> dict[str, Any]:
        """For the ConfigMaps of one namespace."""
        address = f"https://127.0.0.1:{self._server.server_address[1]}/"
        hook = {
            "name": "slow.dsd-operator.io",
            "clientConfig": {"url": address, "caBundle": base64.b64encode(self.authority).decode()},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["configmaps"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 30,
        }
        meta = {"name": f"slow-{namespace}"}
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        return {**kind, "metadata": meta, "webhooks": [hook]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    webhook: Webhook


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.webhook.calls += 1
        self.server.webhook.gate.wait(60)
        answer = {"uid": review["request"]["uid"], "allowed": True}
        kind = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        body = json.dumps({**kind, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence."""


@pytest.fixture
def webhook(world: World, tmp_path: Path) -> Iterator[Webhook]:
    """In force for the test's namespace."""
    (tmp_path / "webhook").mkdir()
    with Webhook(tmp_path / "webhook") as made:
        configuration = made.configuration(world.namespace)
        world.apply(configuration)

        def in_force() -> bool:
            world.kubectl("create", "configmap", "probe", "--dry-run=server")
            return made.calls > 0

        wait_for("the webhook to be asked", in_force, bool, 30, 0.1)
        yield made
        world.kubectl("delete", "validatingwebhookconfiguration", configuration["metadata"]["name"])


def test_the_next_schedule_does_not_wait_for_it(world: World, webhook: Webhook) -> None:
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    stored = world.stored_triples()

    webhook.gate.clear()
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND
    condition = world.wait_condition("Ready", status="False", reason="ApplyFailed")
    assert "an admission webhook may be slow" in condition["message"]
    assert "ConfigMap" in condition["message"]
    world.schedule(THIRD)
    world.wait_schedule(applied=1)
    assert engine.triples() == THIRD
    assert world.stored_triples() == stored, "the webhook still holds the first of them"

    webhook.gate.set()
    world.wait_stored(THIRD)
    world.wait_status("no more failures", lambda s: "ApplyFailed" not in {c["reason"] for c in s["conditions"]})
