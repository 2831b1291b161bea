"""The command `dsd` against a real engine: below a root path, with a token, over TLS."""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsd_runtime.cli.main import main
from tests.runtime import tokens
from tests.runtime.certificates import Authority, Pair
from tests.runtime.conftest import Engine

pytestmark = pytest.mark.engine


def dsd(*words: str, url: str, token: str = "") -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["schedule", *words], env={"DSD_URL": url, "DSD_TOKEN": token})


@contextmanager
def behind_tls(port: int, pair: Pair) -> Iterator[int]:
    """The port of a listener with TLS in front of `port`, as an ingress is."""
    loop = asyncio.new_event_loop()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer), return_exceptions=True)

    server = loop.run_until_complete(asyncio.start_server(forward, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_show_set_and_read_back(engine: Engine, tmp_path: Path) -> None:
    """The engine has --root-path /llm and --api-key, which does not guard these routes."""
    token = tmp_path / "token"
    token.write_text(tokens.mint(engine.key) + "\n")
    url = f"http://127.0.0.1:{engine.server.port}/llm"
    done = dsd("set", "1-2:4,3-:0", "--token-file", str(token), url=url)
    assert done.exit_code == 0, done.output
    assert engine.in_use() == [(1, 2, 4), (3, 2**31 - 1, 0)]
    assert "in use by 1 engine core, read back: schedule" in done.stdout
    engine.server.complete("the cat sat on the mat and the cat sat on the mat", 30)
    shown = [" ".join(line.split()) for line in dsd("show", url=url).stdout.splitlines()]
    assert "1-2 4 in use" in shown
    assert any(line.startswith("method ngram on model runner V1, vLLM 0.32.0") for line in shown)


def test_smoothing(engine: Engine) -> None:
    url, token = f"http://127.0.0.1:{engine.server.port}", tokens.mint(engine.key)
    before = engine.in_use()
    assert dsd("set", "--smoothing", "dwellSteps=7,marginPercent=10", url=url, token=token).exit_code == 0
    assert engine.server.status()["schedule"]["smoothing"] == {"dwellSteps": 7, "marginPercent": 10}
    assert engine.in_use() == before
    assert "smoothing: at least 7 steps for each K, margin 10 %" in dsd("show", url=url).stdout
    assert dsd("set", "1-:2", "--smoothing", "off", url=url, token=token).exit_code == 0
    assert "smoothing" not in engine.server.status()["schedule"]


@pytest.mark.parametrize(
    ("words", "token", "exit_code", "text"),
    [
        (["1-:5"], "good", 5, "refused (422): K=5 is above the maximum of 4"),
        (["1-:1", "--revision", "1"], "good", 5, "refused (409)"),
        (["1-:1"], "wrong", 5, "refused (401)"),
        (["1-:5", "--dry-run"], "", 5, "the server would refuse this"),
    ],
)
def test_refusals_change_nothing(engine: Engine, words: list[str], token: str, exit_code: int, text: str) -> None:
    before = engine.server.status()["schedule"]
    given = tokens.mint(engine.key) if token == "good" else token
    done = dsd("set", *words, url=f"http://127.0.0.1:{engine.server.port}", token=given)
    assert (done.exit_code, text in done.output) == (exit_code, True), done.output
    assert engine.server.status()["schedule"] == before


def test_dry_run_changes_nothing(engine: Engine) -> None:
    before = engine.server.status()["schedule"]
    done = dsd("set", "1-3:1,4-:2", "--dry-run", "-o", "json", url=f"http://127.0.0.1:{engine.server.port}")
    assert json.loads(done.stdout)["before"] == before
    assert json.loads(done.stdout)["applied"] is False
    assert engine.server.status()["schedule"] == before


def test_wrong_root_path(engine: Engine) -> None:
    done = dsd("show", url=f"http://127.0.0.1:{engine.server.port}/elsewhere")
    assert (done.exit_code, "there is no DSD plugin at" in done.output) == (4, True), done.output


def test_tls(engine: Engine, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    token = tokens.mint(engine.key)
    with behind_tls(engine.server.port, authority.issue("server")) as port:
        url = f"https://127.0.0.1:{port}/llm"
        trusted = ["--ca-file", str(authority.pair.certificate)]
        done = dsd("set", "1-:3", *trusted, url=url, token=token)
        assert done.exit_code == 0, done.output
        assert engine.in_use() == [(1, 2**31 - 1, 3)]
        assert dsd("show", "--insecure", url=url).exit_code == 0
        done = dsd("show", url=url)
        assert (done.exit_code, "its certificate is not trusted" in done.output) == (3, True), done.output
        done = dsd("show", url=url.replace("https:", "http:"))
        assert done.exit_code == 3, done.output
