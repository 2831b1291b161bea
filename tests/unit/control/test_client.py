"""The Kubernetes client's wrapper, against a small HTTP server that says what an API server would."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.connection import load_configuration, load_connection
from dsd_operator.cluster.errors import Conflict, Gone, Retry


class Server:
    """Answers every request with what `answer` makes of it, and keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.answers: list[web.Response] = []
        self.tokens: list[str] = []
        self.accepted: str | None = None
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.path, dict(request.query), dict(request.headers)))
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.accepted is not None and self.tokens[-1] != f"Bearer {self.accepted}":
            return web.json_response({"message": "Unauthorized"}, status=401)
        return self.answers.pop(0) if self.answers else web.json_response({})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def write_kubeconfig(path: Path, server: str, token: str) -> None:
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content))


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server.url, "first")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    assert os.environ["KUBECONFIG"] == str(kubeconfig)
    counted: list[tuple[str, int]] = []
    made = Client(lambda verb, code: counted.append((verb, code)))
    await made.open()
    made.counted = counted  # type: ignore[attr-defined]
    yield made
    await made.close()


MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "demo", "namespace": "ns"}, "spec": {},
}  # fmt: skip


async def test_get_says_none_for_what_is_not_there(server: Server, client: Client) -> None:
    server.answers = [web.json_response({"message": "not found"}, status=404)]
    assert await client.get(resources.DEPLOYMENT, "ns", "demo") is None
    assert server.requests[0][:2] == ("GET", "/apis/apps/v1/namespaces/ns/deployments/demo")
    assert client.counted == [("GET", 404)]  # type: ignore[attr-defined]


async def test_apply_is_a_server_side_apply_with_force(server: Server, client: Client) -> None:
    await client.apply(MANIFEST)
    method, path, query, headers = server.requests[0]
    assert (method, path) == ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/demo")
    assert query == {"fieldManager": "dsd-operator", "force": "true"}
    assert headers["Content-Type"] == "application/apply-patch+yaml"


async def test_the_status_has_a_manager_of_its_own(server: Server, client: Client) -> None:
    body = {**MANIFEST, "apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment"}
    await client.apply_status(body)
    method, path, query, _ = server.requests[0]
    assert path == "/apis/dsd-operator.io/v1alpha1/namespaces/ns/dsddeployments/demo/status"
    assert (method, query["fieldManager"]) == ("PATCH", "dsd-operator-status")


async def test_a_long_list_comes_in_pages(server: Server, client: Client) -> None:
    server.answers = [
        web.json_response({"items": [{"a": 1}], "metadata": {"continue": "to/ken="}}),
        web.json_response({"items": [{"a": 2}], "metadata": {}}),
    ]
    assert await client.list(resources.POD, None, "x=y") == [{"a": 1}, {"a": 2}]
    assert [request[1] for request in server.requests] == ["/api/v1/pods"] * 2
    assert server.requests[1][2] == {"limit": "500", "labelSelector": "x=y", "continue": "to/ken="}


async def test_names_come_in_small_pages(server: Server, client: Client) -> None:
    first, second = ({"metadata": {"namespace": "ns", "name": name}, "spec": {}} for name in ("a", "b"))
    server.answers = [
        web.json_response({"items": [first], "metadata": {"continue": "token"}}),
        web.json_response({"items": [second], "metadata": {}}),
    ]
    assert await client.names(resources.DSD_DEPLOYMENT, None) == [("ns", "a"), ("ns", "b")]
    assert server.requests[1][2] == {"limit": "100", "continue": "token"}


@pytest.mark.parametrize(("proxy", "looked_for"), [("", False), ("http://proxy.example:3128", True)])
@pytest.mark.usefixtures("client")
async def test_a_proxy_is_looked_for_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, proxy: str, looked_for: bool
) -> None:
    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert (await load_connection()).trust_env == looked_for
    assert (await load_configuration()).client_session_kwargs == {"trust_env": looked_for}


async def test_refused_credentials_are_read_anew_once(server: Server, client: Client, kubeconfig: Path) -> None:
    server.accepted = "second"
    write_kubeconfig(kubeconfig, server.url, "second")
    assert await client.get(resources.POD, "ns", "demo") == {}
    assert server.tokens == ["Bearer first", "Bearer second"]
    assert (await load_connection()).token == "second"


async def test_credentials_that_stay_refused_are_an_error_and_no_loop(server: Server, client: Client) -> None:
    server.accepted = "other"
    with pytest.raises(Retry) as caught:
        await client.get(resources.POD, "ns", "demo")
    assert caught.value.code == 401
    assert len(server.requests) == 2


async def test_errors_carry_the_server_s_words(server: Server, client: Client) -> None:
    server.answers = [web.json_response({"message": "the object has been modified"}, status=409)]
    with pytest.raises(Conflict, match="has been modified"):
        await client.apply(MANIFEST)


async def test_no_answer_is_counted_and_retried(client: Client, kubeconfig: Path) -> None:
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1", "first")
    other = Client()
    await other.open()
    with pytest.raises(Retry, match="does not answer"):
        await other.get(resources.POD, "ns", "demo")
    await other.close()
    assert client.counted == []  # type: ignore[attr-defined]


async def test_whether_the_crd_is_there(server: Server, client: Client) -> None:
    found = {"resources": [{"name": "dsddeployments"}, {"name": "dsddeployments/status"}]}
    missing = web.json_response({"message": "no"}, status=404)
    server.answers = [missing, web.json_response({"resources": []}), web.json_response(found)]
    assert [await client.serves(resources.DSD_DEPLOYMENT) for _ in range(3)] == [False, False, True]


async def test_the_keys_are_asked_for_in_their_media_type(server: Server, client: Client) -> None:
    server.answers = [web.json_response({"keys": []}, content_type="application/jwk-set+json")]
    assert await client.signing_keys() == {"keys": []}
    assert "application/jwk-set+json" in server.requests[0][3]["Accept"]


async def test_a_missing_collection_is_not_an_empty_one(server: Server, client: Client) -> None:
    server.answers = [web.json_response({"message": "no such kind"}, status=404)]
    with pytest.raises(Gone):
        await client.list(resources.DSD_DEPLOYMENT, "ns")


async def test_a_pause_that_is_asked_for_holds_for_all_requests(server: Server, client: Client) -> None:
    server.answers = [web.json_response({"message": "busy"}, status=429, headers={"Retry-After": "30"})]
    with pytest.raises(Retry):
        await client.get(resources.POD, "ns", "demo")
    with pytest.raises(Retry, match="asked for a pause") as caught:
        await client.apply(MANIFEST)
    assert 25 < caught.value.delay < 37
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", ["<html>welcome</html>", "[]"])
async def test_an_answer_that_is_no_object_may_become_one(server: Server, client: Client, body: str) -> None:
    server.answers = [web.Response(text=body)]
    with pytest.raises(Retry, match="no JSON object"):
        await client.get(resources.POD, "ns", "demo")
