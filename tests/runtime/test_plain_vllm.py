"""The page for users of plain vLLM, command by command: an installed wheel, a virtualenv of its own, a real engine.

The substitutions are few: a wheel built beforehand for the checkout (vLLM is there already and nothing is fetched), a
tiny model, another port.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from dsd_runtime.config_file import parse
from tests.docs.blocks import blocks
from tests.runtime.conftest import COMMON
from tests.runtime.server import START_SECONDS, STOP_SECONDS, free_port, wait_until

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "plain-vllm.md"
BLOCKS = [block.text for block in blocks(PAGE) if block.language == "sh"]
INSTALL = "pip install './runtime[vllm]'\n"


def block(start: str) -> str:
    """The one block of the page that begins with `start`."""
    (found,) = [text for text in BLOCKS if text.startswith(start)]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime's wheel, built from a copy: building leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = shutil.copytree(ROOT / "runtime", folder / "runtime", ignore=shutil.ignore_patterns("*.egg-info", "build"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "-q", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)
    (made,) = folder.glob("*.whl")
    return made


@dataclass
class Terminal:
    """A shell in a folder of its own, whose commands are those of a virtualenv with our wheel in it."""

    folder: Path
    bin: Path
    port: int

    def environment(self) -> dict[str, str]:
        """That of the user: nothing of ours is set, but for the port."""
        own = {"PATH": f"{self.bin}:{os.environ['PATH']}", "DSD_URL": f"http://127.0.0.1:{self.port}"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DSD_", "PROMETHEUS_", "PYTHON"))}
        engine = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
        return {**kept, **own, **engine, "TMPDIR": str(self.folder / "tmp")}

    def run(self, text: str) -> str:
        """What a block prints; fails when a command of it fails."""
        script = text.replace("localhost:8000", f"127.0.0.1:{self.port}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def terminal(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A fresh virtualenv; the wheel goes in as the page says, then everything else is lent from the tests' own."""
    folder = tmp_path_factory.mktemp("plain")
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    terminal = Terminal(folder, home / "bin", free_port())
    (folder / "tmp").mkdir()
    assert block("pip install") == INSTALL
    options = ["--python", str(home / "bin" / "python"), "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *options], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return terminal


class Served:
    """The `dsd-serve` of the page, in its folder."""

    def __init__(self, terminal: Terminal, model: Path) -> None:
        more = f"--host 127.0.0.1 --port {terminal.port} --max-num-seqs 8 {' '.join(COMMON)}"
        text = (
            block("MODEL=")
            .replace("Qwen/Qwen3-0.6B", str(model))
            .replace("dsd-serve $MODEL", f"exec dsd-serve $MODEL {more}")
        )
        assert text.count(str(model)) == text.count(more) == 1
        self.log = terminal.folder / "engine.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=terminal.folder, env=terminal.environment(), stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def stop(self) -> None:
        """End it and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def served(terminal: Terminal, models: Path) -> Iterator[Served]:
    """The server, once it answers."""
    terminal.run(block("cat > schedule.yaml"))
    served = Served(terminal, models / "target")

    def healthy() -> bool:
        assert served.process.poll() is None, served.log.read_text(errors="replace")[-6000:]
        return subprocess.run(["curl", "-sf", f"127.0.0.1:{terminal.port}/health"], check=False).returncode == 0

    try:
        wait_until("the engine is healthy", healthy, START_SECONDS)
        yield served
    finally:
        served.stop()


def status(terminal: Terminal) -> dict[str, Any]:
    """The status, by the command."""
    found: dict[str, Any] = json.loads(terminal.run("dsd schedule show -o json"))
    return found


def in_use(terminal: Terminal) -> list[tuple[int, int, int]]:
    """The schedule in use."""
    ranges = status(terminal)["schedule"]["ranges"]
    return [(r["startBatchSize"], r["endBatchSize"], r["numSpeculativeTokens"]) for r in ranges]


def complete(terminal: Terminal, tokens: int) -> None:
    """Let the engine compute one request."""
    body: Mapping[str, Any] = {
        "model": "tiny",
        "prompt": "the cat sat on the mat " * 4,
        "max_tokens": tokens,
        "ignore_eos": True,
    }
    terminal.run(f"curl -sf localhost:8000/v1/completions -H 'Content-Type: application/json' -d '{json.dumps(body)}'")


def test_the_wheel_is_what_runs(terminal: Terminal) -> None:
    found = terminal.run("python -c 'import dsd_runtime.cli, dsd_runtime.convert as c; print(c.__file__)'")
    assert Path(found.strip()).is_relative_to(terminal.folder)
    helped = terminal.run(block("dsd-serve --help"))
    assert "--dsd-config FILE" in helped
    assert "--dry-run" in helped


def test_what_the_page_promises(terminal: Terminal, served: Served) -> None:
    """In the order of the page, since each step changes what the next one shows."""
    shown = terminal.run(block("dsd schedule show"))
    assert "from the schedule file, no revision" in shown
    assert in_use(terminal) == [(1, 8, 3), (9, 256, 0)]
    complete(terminal, 20)
    assert "in use" in terminal.run(block("dsd schedule show"))

    terminal.run(block("sed -i"))
    wait_until("the edited file is in use", lambda: in_use(terminal) == [(1, 16, 3), (17, 256, 0)])

    changed = terminal.run(block("dsd schedule set 1-4"))
    assert "nothing was changed" in changed
    assert "in use by 1 engine core, read back" in changed
    assert in_use(terminal) == [(1, 4, 3), (5, 16, 1), (17, 2**31 - 1, 0)]

    terminal.run(block("dsd schedule set --smoothing"))
    assert status(terminal)["schedule"]["smoothing"] == {"dwellSteps": 20, "marginPercent": 10}

    metrics = terminal.run(block("curl -s"))
    assert re.search(r'dsd_emitted_tokens_total\{.*k="3".*\} [1-9]', metrics), metrics
    assert served.process.poll() is None


def test_a_changed_k_is_the_one_that_runs(terminal: Terminal, served: Served) -> None:
    """Edited by hand while the server runs: the next steps use the new K."""
    assert served.process.poll() is None
    file = terminal.folder / "schedule.yaml"
    for k in (1, 0, 2):
        file.write_text(f"ranges: [{{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: {k}}}]\n")
        wait_until("the edited file is in use", lambda k=k: in_use(terminal) == [(1, 8, k)])
        complete(terminal, 10)
        assert status(terminal)["engines"][0]["numSpeculativeTokens"] == k


def test_the_metrics_folder_is_the_only_one(terminal: Terminal, served: Served) -> None:
    assert served.process.poll() is None
    (ours,) = (terminal.folder / "tmp").glob("dsd-serve-*")
    assert [p.name for p in ours.iterdir()] == ["0"]
    assert list(ours.glob("0/*.db"))


def test_a_second_server_on_that_port_is_told_so(terminal: Terminal, served: Served) -> None:
    assert served.process.poll() is None
    text = f"dsd-serve model --host 127.0.0.1 --port {terminal.port} 2>&1 || echo status $?"
    assert re.fullmatch(r"dsd-serve: port \d+ of 127.0.0.1 is in use by .*--port\nstatus 2\n", terminal.run(text))


def test_sigterm_lets_open_streams_come_to_their_end(terminal: Terminal, served: Served) -> None:
    """By default: vLLM alone would cut them. The last test of those that share the server."""
    pieces: list[list[str]] = [[] for _ in range(8)]
    streams = [threading.Thread(target=stream, args=(terminal.port, one)) for one in pieces]
    for one in streams:
        one.start()
    try:
        wait_until("all streams have begun", lambda: all(pieces), 120)
        assert all(one.is_alive() for one in streams), "the requests are too short for this test"
        served.process.terminate()
    finally:
        for one in streams:
            one.join(180)
    assert served.process.wait(STOP_SECONDS) == 0
    assert [lines[-1] for lines in pieces] == ["data: [DONE]"] * len(pieces)
    assert [sum('"finish_reason":"length"' in line for line in lines) for lines in pieces] == [1] * len(pieces)


def stream(port: int, pieces: list[str]) -> None:
    """Read one completion to its end."""
    body = {"model": "tiny", "prompt": "the cat sat", "max_tokens": 300, "ignore_eos": True, "stream": True}
    url = f"http://127.0.0.1:{port}/v1/completions"
    with httpx.stream("POST", url, json=body, timeout=120, trust_env=False) as answer:
        pieces.extend(line for line in answer.iter_lines() if line)


def test_conversion(terminal: Terminal) -> None:
    printed = terminal.run(block("dsd schedule convert"))
    assert json.loads(printed)["num_speculative_tokens_per_batch_size"] == [[1, 64, 3], [65, 128, 1], [129, 512, 0]]
    assert len(parse((terminal.folder / "converted.yaml").read_bytes()).ranges) == 3


def test_every_block_is_run() -> None:
    """The tests above name each block of the page; a new one must be run too."""
    source = Path(__file__).read_text()
    starts = re.findall(r'block\("([^"]+)"\)', source)
    assert sorted(block(start) for start in set(starts)) == sorted(BLOCKS)
