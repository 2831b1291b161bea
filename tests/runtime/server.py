"""A real `dsd-serve` in a process of its own, with the tiny models. Ends with the test session, by its own pid."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

START_SECONDS = 300
STOP_SECONDS = 60


def wait_until(what: str, check: Any, seconds: float = 30) -> Any:
    """Poll `check` until it returns something true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        if found := check():
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def alive(process: Any) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def small_tmpfs(folder: Path, size: int, mode: str = "rw") -> Iterator[Path]:
    """A tmpfs of `size` bytes at `folder`; skips the test where this process may not mount."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},{mode}", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here (needs root): {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(filler: Path) -> None:
    """Write to `filler` until its file system is full."""
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass


class Server:
    """One running engine; `client` talks to it."""

    def __init__(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start it; `folder` takes the log and the metrics."""
        self.port = free_port()
        self.log = folder / "engine.log"
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=120, trust_env=False)
        settings = {
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            # One thread: those of a pool wait for each other at every kernel, which takes long on a machine in use.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
        }
        command = [sys.executable, "-c", "from dsd_runtime.serve import main; main()", *arguments]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **settings, **(environment or {})}
            )

    @property
    def pid(self) -> int:
        """The process that `dsd-serve` has become."""
        return self._process.pid

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_ended(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it has ended by itself; returns the exit code."""
        wait_until("the server ends", lambda: self._process.poll() is not None, seconds)
        code = self._process.returncode
        assert code is not None
        return code

    def wait_healthy(self, seconds: float = START_SECONDS) -> "Server":
        """Wait until it serves; fails with the end of its log when it ends before."""
        wait_until("the engine is healthy", self._healthy, seconds)
        return self

    def _healthy(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"the engine ended with {self._process.returncode}:\n{self.tail()}")
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def tail(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-6000:]

    def stop(self) -> None:
        """End it and wait for it."""
        self.client.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def status(self) -> dict[str, Any]:
        """The body of GET /dsd/v1/status."""
        answer = self.client.get("/dsd/v1/status")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def metrics(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Every sample of /metrics: name -> sorted labels -> value."""
        from prometheus_client.parser import text_string_to_metric_families

        found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for family in text_string_to_metric_families(self.client.get("/metrics").text):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return found

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series that carry `labels`."""
        series = self.metrics().get(name, {})
        return sum(value for keys, value in series.items() if labels.items() <= dict(keys).items())

    def complete(self, prompt: str, tokens: int) -> list[int]:
        """Greedy completion of exactly `tokens` tokens, as token ids."""
        body = {
            "model": "tiny",
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        answer = self.client.post("/v1/completions", json=body, headers={"Authorization": f"Bearer {API_KEY}"})
        assert answer.status_code == 200, answer.text
        ids: list[int] = answer.json()["choices"][0]["token_ids"]
        return ids


API_KEY = "key-of-the-api"
