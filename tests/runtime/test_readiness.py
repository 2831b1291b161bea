"""When a readiness probe is let through to vLLM's health, and what it costs the engine cores."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from dsd_runtime import compat, resolved, routes
from dsd_runtime.protocol import READY_PATH, ConfigFile
from dsd_runtime.readiness import in_place
from dsd_runtime.state import EngineState, Proposal
from tests.runtime.conftest import wire
from tests.runtime.examples import OWNER, envelope, ranges, revision
from tests.runtime.test_routes import Core, client


class Probed:
    """The endpoint plugin before a web application that has a /health of its own."""

    def __init__(self, *cores: Core, root: str = "") -> None:
        self.healthy = True
        self.cores = cores
        self.plugin = routes.DsdEndpoints()
        self.plugin._engines = routes.Engines(client(*cores) if cores else None)
        app: Any = Starlette(routes=[Route("/health", self._health)])
        app.add_api_route = lambda *_, **__: None
        self.plugin.attach_router(app)
        served = Starlette(routes=[Mount(root, app)]) if root else app
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=f"http://engine{root}")

    def _health(self, _: Any) -> PlainTextResponse:
        return PlainTextResponse("vLLM's own", 200 if self.healthy else 503)

    async def get(self, path: str = READY_PATH) -> httpx.Response:
        """The answer to a probe."""
        return await self._http.get(path)

    def calls(self) -> int:
        """How often the engine cores were asked."""
        return sum(len(core.calls) for core in self.cores)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config file of the engine, with revision 5."""
    path = tmp_path / "config.yaml"
    write(path, number=5, k=2)
    monkeypatch.setenv(resolved.CONFIG_ENV, str(path))
    monkeypatch.setattr(compat, "gate", lambda: compat.Gate("on", "0.32.0"))
    return path


def write(file: Path, number: int, k: int) -> None:
    """Write a config file."""
    file.write_text(json.dumps({"revision": {"owner": OWNER, "number": number}, "ranges": wire([(1, 16, k)])}))


def take(core: Core, number: int = 5, k: int = 2) -> None:
    """Let a core use a schedule."""
    core.state.accept(Proposal(ranges((1, 16, k)), revision(number), "file"))


@pytest.mark.usefixtures("file")
async def test_every_core_must_have_begun_with_the_file() -> None:
    probed = Probed(Core(0), Core(1))
    assert (await probed.get()).status_code == 503
    take(probed.cores[0])
    answer = await probed.get()
    assert answer.status_code == 503
    assert "the schedule of the config file is not in use" in answer.json()["detail"]
    take(probed.cores[1])
    assert ((await probed.get()).status_code, (await probed.get()).text) == (200, "vLLM's own")


@pytest.mark.usefixtures("file")
async def test_health_alone_needs_no_schedule() -> None:
    """Start-up and liveness: a pod whose schedule is refused is not restarted for it."""
    probed = Probed(Core(0))
    assert (await probed.get("/health")).status_code == 200
    assert (await probed.get("/health?schedule=other")).status_code == 200
    assert probed.calls() == 0


async def test_who_has_begun_is_asked_nothing_any_more(file: Path) -> None:
    probed = Probed(Core(0))
    take(probed.cores[0])
    assert (await probed.get()).status_code == 200
    asked = probed.calls()
    write(file, number=6, k=9)
    for _ in range(10):
        assert (await probed.get()).status_code == 200, "a schedule that is refused takes no engine out of service"
    assert probed.calls() == asked == 1
    probed.healthy = False
    assert (await probed.get()).status_code == 503


@pytest.mark.usefixtures("file")
async def test_a_newer_schedule_over_http_counts() -> None:
    probed = Probed(Core(0))
    take(probed.cores[0], number=7, k=3)
    assert (await probed.get()).status_code == 200


@pytest.mark.usefixtures("file")
async def test_an_engine_that_does_not_answer_is_not_ready() -> None:
    core = Core(0)

    async def fail(_: str) -> None:
        raise RuntimeError("no engine core")

    core.before = fail
    assert (await Probed(core).get()).status_code == 503


async def test_a_file_that_cannot_be_read_is_said(file: Path) -> None:
    probed = Probed(Core(0))
    write(file, number=0, k=2)
    answer = await probed.get()
    assert answer.status_code == 503
    assert str(file) in answer.json()["detail"]


@pytest.mark.usefixtures("file")
async def test_without_a_file_or_a_plugin_health_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "gate", lambda: compat.Gate("off", "9.9.9", "vLLM 9.9.9 is not known"))
    assert (await Probed(Core(0)).get()).status_code == 200
    monkeypatch.undo()
    monkeypatch.delenv(resolved.CONFIG_ENV, raising=False)
    assert (await Probed(Core(0)).get()).status_code == 200
    assert (await Probed().get()).status_code == 200, "a server without an engine"


@pytest.mark.usefixtures("file")
async def test_below_a_root_path() -> None:
    assert (await Probed(Core(0), root="/llm").get()).status_code == 503


@pytest.mark.parametrize(
    ("proposal", "expected"),
    [
        (None, False),
        (Proposal(ranges((1, 16, 2)), None, "file"), True),
        (Proposal(ranges((1, 16, 3)), None, "file"), False),
        (Proposal(ranges((1, 16, 3)), revision(1), "http"), True),
    ],
)
def test_a_file_without_a_revision(proposal: Proposal | None, expected: bool) -> None:
    state = EngineState(envelope(4), {}, ranges((1, 16, 1)), lambda _: None)
    if proposal is not None:
        state.accept(proposal)
    config = ConfigFile(ranges=ranges((1, 16, 2)))
    assert in_place(state.current.shown.dump(), config) is expected
