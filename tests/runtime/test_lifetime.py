"""What happens to a real engine when things around it break: docs/reference/lifetime.md has the table.

One server lives through all of it, then ends by SIGTERM in the middle of swaps. At full size (`long`) it starts again
in the same folders and loses its engine core; `make test` has the restart of a pod in tests/e2e/test_self_healing.py,
and the death of an engine core in test_data_parallel.
"""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from tests.runtime import race_plugin
from tests.runtime.conftest import COMMON, NGRAM, Triples, wire
from tests.runtime.server import Server, alive, fill, small_tmpfs, wait_until

pytestmark = pytest.mark.engine

SECRET = "sesame"
OWNER = "team-a/demo/uid-1"
MIB = 1 << 20
GOOD: Triples = [(1, 4, 3), (5, 64, 1)]
PROMPT = "the cat sat on the mat and the cat sat on the mat"
TOKENS = 20
STREAMS = 8
DRAIN_SECONDS = 1
"""Shorter than what 8 streams need."""


@dataclass
class World:
    """The server and its folders. `filler` is None where no small disk could be made."""

    folder: Path
    arguments: list[str]
    filler: Path | None
    race: dict[str, str]
    why_not: str = ""
    server: Server = None  # type: ignore[assignment]
    number: int = 5
    got: int = 0

    @property
    def config(self) -> Path:
        """The config file, in a folder of its own."""
        return self.folder / "config" / "config.yaml"

    def start(self) -> None:
        """Start the server, again in the same folders."""
        metrics = str(self.folder / "disk" / "metrics")
        if (log := self.folder / "engine.log").exists():
            log.rename(self.folder / "engine-before.log")
        self.server = Server(self.folder, self.arguments, {"PROMETHEUS_MULTIPROC_DIR": metrics, **self.race})
        self.server.wait_healthy(600)

    def content(self, triples: Triples) -> str:
        """A config file with a revision above all before it."""
        self.number += 1
        revision = {"owner": OWNER, "number": self.number}
        return json.dumps({"revision": revision, "ranges": wire(triples), "auth": {"tokenFile": "../token"}})

    def put(self, triples: Triples) -> httpx.Response:
        """PUT a schedule with a revision above all before it."""
        self.number += 1
        body = {"revision": {"owner": OWNER, "number": self.number}, "ranges": wire(triples)}
        return self.server.client.put("/dsd/v1/schedule", json=body, headers={"Authorization": f"Bearer {SECRET}"})

    def complete(self) -> None:
        """One request that must be served."""
        self.got += len(self.server.complete(PROMPT, TOKENS))

    def faults(self) -> dict[str, str]:
        """What the status says is wrong: source -> message."""
        return {fault["source"]: fault["message"] for fault in self.server.status()["faults"]}

    def revision(self) -> int:
        """The number of the schedule in use."""
        number: int = self.server.status()["schedule"]["revision"]["number"]
        return number

    def disk(self) -> Path:
        """The file that fills the disk; skips the test where there is no small one."""
        if self.filler is None:
            pytest.skip(self.why_not)
        return self.filler


@pytest.fixture(scope="module")
def world(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server whose metrics are on a small disk that is full from the start."""
    folder = tmp_path_factory.mktemp("lifetime")
    (folder / "token").write_text(SECRET)
    (folder / "config").mkdir()
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "16", "--speculative-config", json.dumps(NGRAM)]
    arguments += ["--dsd-config", str(folder / "config" / "config.yaml"), "--shutdown-timeout", str(DRAIN_SECONDS)]
    with ExitStack() as stack:
        world = World(folder, arguments, folder / "disk" / "filler", race_plugin.install(folder))
        try:
            stack.enter_context(small_tmpfs(folder / "disk", 4 * MIB))
        except pytest.skip.Exception as skipped:
            world.filler, world.why_not = None, str(skipped)
        (folder / "disk" / "metrics").mkdir()
        if world.filler is not None:
            fill(world.filler)
        world.config.write_text(world.content(GOOD))
        try:
            world.start()
            yield world
        finally:
            world.server.stop()


def test_disk_that_is_full_at_start(world: World) -> None:
    """vLLM's own series suffer the same way as ours, and come back with them, to the token."""
    filler = world.disk()
    for _ in range(3):
        world.complete()
    assert "No space left on device" in world.faults()["metrics"]
    assert "dsd_steps_total" not in world.server.metrics()
    filler.unlink()

    def healed() -> bool:
        world.complete()
        totals = [world.server.total(name) for name in ("dsd_emitted_tokens_total", "vllm:generation_tokens_total")]
        return totals == [world.got, world.got] and not world.faults()

    wait_until("all is on /metrics", healed, 120)


def test_disk_that_fills_at_run_time(world: World) -> None:
    filler = world.disk()
    fill(filler)
    try:
        assert world.put([(1, 16, 2)]).status_code == 200
        wait_until("it is told", lambda: "No space left on device" in world.faults().get("metrics", ""))
        assert world.server.total("dsd_fault", source="metrics") == 1, "its place on disk is older than the fault"
        assert world.server.total("dsd_schedule_revision_info", revision=str(world.number)) == 0
        world.complete()
    finally:
        filler.unlink()
    wait_until("the fault is gone", lambda: not world.faults())
    assert world.server.total("dsd_fault", source="metrics") == 0
    wait_until(
        "the schedule is shown",
        lambda: world.server.total("dsd_schedule_revision_info", revision=str(world.number)) == 1,
    )
    assert world.server.log.read_text().count("metrics are incomplete") > 0


def vanish(world: World) -> None:
    """Somebody removes the file."""
    world.config.unlink()


def lose_the_directory(world: World) -> None:
    """The volume goes away."""
    world.config.parent.rename(world.folder / "elsewhere")


def half_write(world: World) -> None:
    """An editor that does not write in one step, or a copy that was cut short."""
    world.config.write_text(world.config.read_text()[:-30])


def corrupt(world: World) -> None:
    """Bytes that are no text."""
    world.config.write_bytes(b"\x00\xff" * 40)


def bar(world: World) -> None:
    """Not to be read, even by root: a link that goes round in a circle."""
    world.config.unlink()
    world.config.symlink_to(world.config)


def ask_too_much(world: World) -> None:
    """A good file whose schedule this engine cannot honour."""
    world.config.write_text(world.content([(1, 16, 5)]))


BREAKS: tuple[tuple[Callable[[World], None], str], ...] = (
    (vanish, "No such file or directory"),
    (lose_the_directory, "No such file or directory"),
    (half_write, "not valid YAML"),
    (corrupt, "not valid YAML"),
    (bar, "Too many levels of symbolic links"),
    (ask_too_much, "above the maximum"),
)


@pytest.mark.parametrize(("break_it", "message"), BREAKS)
def test_config_file_that_breaks(world: World, break_it: Callable[[World], None], message: str) -> None:
    """The schedule in use stays, everybody can see why, and a good file counts again."""
    invalid = world.server.total("dsd_schedule_updates_total", source="file", result="invalid")
    logged = world.server.log.read_text().count(message)
    before = world.revision()
    break_it(world)
    try:
        wait_until("the status says so", lambda: message in world.faults().get("file", ""))
        world.complete()
        assert world.revision() == before
        assert world.server.total("dsd_fault", source="file") == 1
        assert world.server.total("dsd_schedule_updates_total", source="file", result="invalid") == invalid + 1
        assert world.put(GOOD).status_code == (200 if break_it is ask_too_much else 403)
    finally:
        mend(world)
    wait_until("the good file counts", lambda: world.revision() == world.number and not world.faults())
    assert world.server.total("dsd_fault", source="file") == 0
    assert world.server.log.read_text().count(message) == logged + 1, "logged once, however often it was looked at"


def mend(world: World) -> None:
    """A good file is at its place again."""
    elsewhere = world.folder / "elsewhere"
    if elsewhere.exists():
        elsewhere.rename(world.config.parent)
    partial = world.config.with_suffix(".partial")
    partial.write_text(world.content(GOOD))
    partial.replace(world.config)


def test_sigterm_with_open_streams_ends_within_the_limit(world: World) -> None:
    """With 8 streams open, whose clients stay, and PUTs in the air: the time of --shutdown-timeout passes, the streams
    end, and so does the server, whatever its clients do, although vLLM tells none of them (`race_plugin`)."""
    ended = threading.Event()
    swaps: list[int] = []
    pieces: list[list[str]] = [[] for _ in range(STREAMS)]
    swapper = threading.Thread(target=swap_until, args=(world, ended, swaps))
    streams = [threading.Thread(target=stream, args=(world.server, one)) for one in pieces]
    try:
        for worker in (swapper, *streams):
            worker.start()
        wait_until("it swaps while it serves", lambda: len(swaps) > 20 and all(pieces), 120)
        assert all(worker.is_alive() for worker in streams), "the requests are too short for this test"
        everything = psutil.Process(world.server.pid).children(recursive=True)
        psutil.Process(world.server.pid).send_signal(signal.SIGTERM)
        assert world.server.wait_ended(DRAIN_SECONDS + 60) == 0
    finally:
        ended.set()
        for worker in (swapper, *streams):
            worker.join(180)
    assert not [worker for worker in (swapper, *streams) if worker.is_alive()]
    wait_until("all its processes have ended", lambda: not any(map(alive, everything)))
    assert set(swaps) <= {200, 503}, "a PUT is answered, or its connection ends"


def swap_until(world: World, ended: threading.Event, swaps: list[int]) -> None:
    """Change the schedule as fast as the server answers, until it does no longer."""
    while not ended.is_set():
        try:
            swaps.append(world.put([(1, 16, len(swaps) % 5)]).status_code)
        except httpx.TransportError:
            return


def stream(server: Server, pieces: list[str]) -> None:
    """Read one long completion to its end, or to that of the connection; a client that never gives up."""
    body = {"model": "tiny", "prompt": PROMPT, "max_tokens": 450, "ignore_eos": True, "stream": True, "n": 2}
    with (
        httpx.Client(base_url=server.client.base_url, timeout=None, trust_env=False) as client,
        suppress(httpx.TransportError),
        client.stream("POST", "/v1/completions", json=body) as answer,
    ):
        pieces.extend(answer.iter_lines())


@pytest.mark.long
def test_restart_begins_with_the_file_and_counts_from_zero(world: World) -> None:
    """In the same folders, as a container that restarts: what an earlier life counted must not be added."""
    mend(world)
    if world.filler is not None:
        world.filler.unlink(missing_ok=True)
    world.start()
    schedule = world.server.status()["schedule"]
    assert (schedule["source"], schedule["revision"]["number"]) == ("file", world.number)
    assert world.server.total("dsd_emitted_tokens_total") == 0
    world.got = 0
    world.complete()
    for name in ("dsd_emitted_tokens_total", "vllm:generation_tokens_total"):
        wait_until(name, lambda name=name: world.server.total(name) == TOKENS)
    assert not world.faults()


@pytest.mark.long
def test_engine_core_that_dies_ends_the_server(world: World) -> None:
    """vLLM's own rule: the container ends, and its restart is the test before. Its exit code is 0 with one API server,
    and 1 with several (`test_data_parallel`). Keep this the last."""
    everything = psutil.Process(world.server.pid).children(recursive=True)
    core = next(process for process in everything if process.cmdline()[0].startswith("VLLM::EngineCore"))
    core.kill()
    assert world.server.wait_ended(300) == 0
    wait_until("all its processes have ended", lambda: not any(map(alive, everything)), 60)
