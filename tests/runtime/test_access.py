"""The routes in a real FastAPI application, without an engine: who may write, and what a flood costs."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from fastapi import FastAPI

from dsd_runtime import access, config_file, resolved, routes
from dsd_runtime.protocol import MAX_BODY_BYTES
from dsd_runtime.routes import MAX_WAITING_WRITERS, DsdEndpoints
from tests.runtime import tokens

KEY = tokens.new_ec()
RANGES = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2}]
BODY = {"revision": {"owner": "o", "number": 5}, "ranges": RANGES}
STATUS = {"mode": "on", "engines": [], "versions": {"runtime": "1", "vllm": "2"}}


class Core:
    """Counts the calls to an engine core; they wait for `gate`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.core_engines = [self]

    async def call_utility_all_async(self, method: str, *_: str) -> list[Any]:
        """As vLLM's client has it."""
        self.calls.append(method)
        await self.gate.wait()
        return [STATUS if method == "dsd_status" else {"result": "applied", "status": STATUS}]


class Pod:
    """The application, its config file, and a client of it."""

    def __init__(self, config: Path, root_path: str = "") -> None:
        self.config = config
        self.core = Core()
        app = FastAPI(root_path=root_path)
        endpoints = DsdEndpoints()
        endpoints.attach_router(app)
        asyncio.run(endpoints.init_state(SimpleNamespace(engine_core=self.core, shutdown=lambda: None), None, None))
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://pod", timeout=120)

    def write(self, auth: dict[str, Any] | None) -> None:
        """Replace the config file."""
        self.config.write_text(json.dumps({"ranges": RANGES} | ({"auth": auth} if auth else {})))

    async def put(
        self, *authorization: str | bytes, body: Any = BODY, path: str = "/dsd/v1/schedule"
    ) -> httpx.Response:
        """PUT with these Authorization headers."""
        headers = [(b"authorization", a.encode() if isinstance(a, str) else a) for a in authorization]
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.client.put(path, content=content, headers=headers)

    async def status_of(self, *authorization: str | bytes) -> int:
        """The status of a PUT with these Authorization headers."""
        return (await self.put(*authorization)).status_code


def bearer(key: tokens.PrivateKey = KEY, kid: str = "one", **claims: Any) -> str:
    """An Authorization header with a fresh token."""
    return f"Bearer {tokens.mint(key, kid, **claims)}"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    """A pod that trusts KEY."""
    monkeypatch.setenv(resolved.CONFIG_ENV, str(tmp_path / "config.yaml"))
    pod = Pod(tmp_path / "config.yaml")
    pod.write(tokens.auth_section(tokens.public_jwk(KEY, "one")))
    return pod


async def test_good_token(pod: Pod) -> None:
    assert await pod.status_of(bearer()) == 200
    assert pod.core.calls == ["dsd_put"]


@pytest.mark.parametrize(
    "headers",
    [[], [""], ["Basic abc"], ["Bearer"], ["Bearer \xff\xfe".encode("latin-1")], ["Bearer " + "é" * 5000]],
)
async def test_refused_before_anything_else(headers: list[str | bytes], pod: Pod) -> None:
    """Neither is the body read, nor the engine asked."""
    answer = await pod.put(*headers, body=b"x" * 10 * MAX_BODY_BYTES)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert pod.core.calls == []


async def test_several_authorization_headers(pod: Pod) -> None:
    good = bearer()
    assert await pod.status_of(good, good) == 401
    assert await pod.status_of(good, "Basic abc") == 401
    assert await pod.status_of("Basic abc", good) == 401
    assert pod.core.calls == []


async def test_token_elsewhere_in_the_request_does_not_count(pod: Pod) -> None:
    token = tokens.mint(KEY)
    body = json.dumps(BODY)
    for changes in (
        {"params": {"access_token": token}},
        {"headers": {"Cookie": f"authorization=Bearer {token}"}},
        {"headers": {"Proxy-Authorization": f"Bearer {token}", "X-Forwarded-Authorization": f"Bearer {token}"}},
    ):
        answer = await pod.client.put("/dsd/v1/schedule", content=body, **changes)  # type: ignore[arg-type]
        assert answer.status_code == 401


async def test_rotated_keys_count_with_the_next_request(pod: Pod) -> None:
    """The order in which the operator does it: the new key joins, tokens are signed with it, the old key goes."""
    fresh = tokens.new_ec()
    old, new = bearer(), bearer(fresh, "two")
    assert [await pod.status_of(header) for header in (old, new)] == [200, 401]
    pod.write(tokens.auth_section(tokens.public_jwk(KEY, "one"), tokens.public_jwk(fresh, "two")))
    assert [await pod.status_of(header) for header in (old, new)] == [200, 200]
    pod.write(tokens.auth_section(tokens.public_jwk(fresh, "two")))
    assert [await pod.status_of(header) for header in (old, new)] == [401, 200]


async def test_changed_issuer_counts_with_the_next_request(pod: Pod) -> None:
    """Same keys or new ones: what the former issuer has signed is refused, 401, so that a new token is asked for."""
    fresh = tokens.new_ec()
    old, new = bearer(), bearer(fresh, "two", iss="https://new.example")
    assert [await pod.status_of(header) for header in (old, new)] == [200, 401]
    both = tokens.auth_section(tokens.public_jwk(KEY, "one"), tokens.public_jwk(fresh, "two"))
    pod.write(both | {"issuer": "https://new.example"})
    assert [await pod.status_of(header) for header in (old, new)] == [401, 200]


async def test_replay_against_another_deployment(pod: Pod) -> None:
    pod.write(tokens.auth_section(tokens.public_jwk(KEY, "one")) | {"audience": "dsd-operator.io/team-b/demo"})
    answer = await pod.put(bearer())
    assert answer.status_code == 403
    assert "www-authenticate" not in answer.headers
    assert pod.core.calls == []


async def test_token_file_with_a_secret_beyond_ascii(pod: Pod) -> None:
    """Through Starlette, which decodes headers as Latin-1: the bytes must still be those of the client."""
    (pod.config.parent / "token").write_text("sésame\n", encoding="utf-8")
    pod.write({"tokenFile": "token"})
    assert await pod.status_of("Bearer sésame".encode()) == 200
    assert await pod.status_of("Bearer sésame".encode("latin-1")) == 401


async def test_auth_can_be_switched_off_and_over(pod: Pod) -> None:
    (pod.config.parent / "token").write_text("s3cret")
    pod.write(None)
    assert await pod.status_of(bearer()) == 403
    pod.write({"tokenFile": "token"})
    assert [await pod.status_of(header) for header in (bearer(), "Bearer s3cret")] == [401, 200]
    pod.config.write_text("ranges: [")
    broken = await pod.put("Bearer s3cret")
    assert (broken.status_code, "not valid YAML" in broken.json()["detail"]) == (403, True)
    pod.config.unlink()
    gone = await pod.put("Bearer s3cret")
    assert (gone.status_code, "No such file" in gone.json()["detail"]) == (403, True)
    pod.write({"tokenFile": "token"})
    assert await pod.status_of("Bearer s3cret") == 200


async def test_without_a_config_file_writing_is_off(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(resolved.CONFIG_ENV)
    answer = await pod.put(bearer())
    assert answer.status_code == 403
    assert "--dsd-config" in answer.json()["detail"]


@pytest.mark.parametrize("content", ['{"ranges": [', ""])
async def test_config_file_is_parsed_once_for_each_content(
    content: str, pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether good or bad: YAML is slow, and anybody may send requests."""
    parse = Mock(wraps=config_file.parse)
    monkeypatch.setattr(access, "parse", parse)
    for _ in range(20):
        await pod.status_of("Bearer x")
    assert parse.call_count == 1
    pod.config.write_text(content or "{}")
    for _ in range(20):
        assert await pod.status_of("Bearer x") == 403
    assert parse.call_count == 2


@pytest.mark.parametrize("token", ["hunter2", "a.hunter2.c"])
async def test_answer_repeats_nothing_of_the_token(token: str, pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    (pod.config.parent / "token").write_text("hunter2-right")
    for auth in (None, {"tokenFile": "token"}, tokens.auth_section(tokens.public_jwk(KEY, "one"))):
        pod.write(auth)
        answer = await pod.put(f"Bearer {token}")
        assert answer.status_code in (401, 403)
        assert "hunter2" not in answer.text + str(answer.headers) + caplog.text


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    """A pod that is served below /llm."""
    monkeypatch.setenv(resolved.CONFIG_ENV, str(tmp_path / "config.yaml"))
    pod = Pod(tmp_path / "config.yaml", "/llm")
    pod.write(tokens.auth_section(tokens.public_jwk(KEY, "one")))
    return pod


@pytest.mark.parametrize("path", ["/dsd/v1/schedule", "/llm/dsd/v1/schedule"])
async def test_root_path_opens_no_way_around(path: str, below: Pod) -> None:
    assert (await below.put(path=path)).status_code == 401
    assert (await below.put(bearer(), path=path)).status_code == 200


async def until(calls: list[str], number: int) -> None:
    """Until the engine has had this many calls."""
    async with asyncio.timeout(60):
        while len(calls) < number:  # noqa: ASYNC110 - a test polls
            await asyncio.sleep(0)


async def test_flood_of_readers_costs_two_calls(pod: Pod) -> None:
    """1000 read at once while the engine computes: one call for those that came first, one for all others."""
    pod.core.gate.clear()
    first = asyncio.create_task(pod.client.get("/dsd/v1/status"))
    await until(pod.core.calls, 1)
    flood = [asyncio.create_task(pod.client.get("/dsd/v1/status")) for _ in range(1000)]
    for _ in range(100):
        await asyncio.sleep(0)
    pod.core.gate.set()
    answers = await asyncio.gather(first, *flood)
    assert {answer.status_code for answer in answers} == {200}
    assert 1 <= len(pod.core.calls) <= 3, pod.core.calls


async def test_writers_are_bounded(pod: Pod) -> None:
    """What is beyond the line is told to come again, and the engine never hears of it."""
    pod.core.gate.clear()
    header = bearer()
    first = asyncio.create_task(pod.put(header))
    await until(pod.core.calls, 1)
    flood = [asyncio.create_task(pod.put(header)) for _ in range(100)]
    async with asyncio.timeout(60):
        while sum(task.done() for task in flood) < 100 - MAX_WAITING_WRITERS:  # noqa: ASYNC110 - a test polls
            await asyncio.sleep(0.01)
    refused = [task.result() for task in flood if task.done()]
    assert {answer.status_code for answer in refused} == {503}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    pod.core.gate.set()
    accepted = [answer for answer in await asyncio.gather(first, *flood) if answer.status_code == 200]
    assert len(accepted) == len(pod.core.calls) == 1 + MAX_WAITING_WRITERS


async def test_those_without_a_token_take_no_place_in_the_line(pod: Pod) -> None:
    pod.core.gate.clear()
    first = asyncio.create_task(pod.put(bearer()))
    await until(pod.core.calls, 1)
    assert {(await pod.put("Bearer x")).status_code for _ in range(50)} == {401}
    second = asyncio.create_task(pod.put(bearer()))
    for _ in range(100):
        await asyncio.sleep(0)
    pod.core.gate.set()
    assert [(await first).status_code, (await second).status_code] == [200, 200]


async def test_read_while_a_write_waits_is_not_held_up(pod: Pod) -> None:
    pod.core.gate.clear()
    write = asyncio.create_task(pod.put(bearer()))
    await until(pod.core.calls, 1)
    read = asyncio.create_task(pod.client.get("/dsd/v1/status"))
    await until(pod.core.calls, 2)
    assert pod.core.calls == ["dsd_put", "dsd_status"]
    pod.core.gate.set()
    assert [(await write).status_code, (await read).status_code] == [200, 200]


async def test_stuck_engine_is_told_to_every_reader(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "ENGINE_TIMEOUT_SECONDS", 0.01)
    pod.core.gate.clear()
    answers = await asyncio.gather(*(pod.client.get("/dsd/v1/status") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {503}
    assert len(pod.core.calls) == 1
