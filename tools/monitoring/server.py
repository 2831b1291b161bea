"""Runs a Prometheus on loopback with a given configuration: its own folder, a free port, gone with the body.

`history` fills a folder with hand-made samples beforehand, so that a test knows every value to the digit and waits for
no scrape.
"""

import ctypes
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from tools.cluster import ports, shell
from tools.cluster.errors import ClusterError
from tools.cluster.waiting import poll
from tools.monitoring import programs
from tools.monitoring.query import Prometheus

_START_SECONDS: Final = 120
_STOP_SECONDS: Final = 30
_STARTS: Final = 3  # another process may take the free port between the look and the use
_PR_SET_PDEATHSIG: Final = 1


def static(job: str, *addresses: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A scrape configuration of fixed HOST:PORT addresses, `labels` on each series of theirs."""
    return {"job_name": job, "static_configs": [{"targets": list(addresses), "labels": dict(labels or {})}]}


def scraping(jobs: Sequence[Mapping[str, Any]], interval: str = "1s") -> dict[str, Any]:
    """A whole configuration: these scrape configurations, and rules evaluated as often."""
    return {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "scrape_configs": [dict(job) for job in jobs],
    }


@contextmanager
def running(
    folder: Path, config: Mapping[str, Any], *options: str, program: Path | None = None
) -> Iterator[Prometheus]:
    """A Prometheus with `config` (prometheus.yml as a mapping; relative paths count from `folder`).

    `program` is another one than Debian's, which leaves the discovery in Kubernetes out.

    `folder` keeps the configuration, the log and the data, so that a second call goes on where the first ended.
    Raises ClusterError with the end of the log if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(dict(config), sort_keys=False))
    process, server = _start(folder, options, program or programs.prometheus())
    try:
        yield server
    finally:
        _stop(process)


def _start(folder: Path, options: Sequence[str], program: Path) -> tuple["subprocess.Popen[bytes]", Prometheus]:
    for _ in range(_STARTS):
        (port,) = ports.free_ports(1)
        process = _launch(folder, port, options, program)
        server = Prometheus(f"http://127.0.0.1:{port}")
        if _serves(process, server):
            return process, server
        _stop(process)
        if "address already in use" not in _log(folder):
            break
    raise ClusterError(f"Prometheus did not start:\n{_log(folder)}")


def _launch(folder: Path, port: int, options: Sequence[str], program: Path) -> "subprocess.Popen[bytes]":
    command: list[str | Path] = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-lifecycle",
        "--storage.tsdb.retention.time=10y",
        *options,
    ]
    with (folder / "prometheus.log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent
        )


def end_with_parent() -> None:
    """A test run that is killed leaves no server behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serves(process: "subprocess.Popen[bytes]", server: Prometheus) -> bool:
    poll(lambda: process.poll() is not None or _ready(server), _START_SECONDS)
    return process.poll() is None and _ready(server)


def _ready(server: Prometheus) -> bool:
    try:
        return httpx.get(f"{server.url}/-/ready", timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _log(folder: Path) -> str:
    return shell.tail((folder / "prometheus.log").read_text(errors="replace"))


def history(folder: Path, openmetrics: str) -> None:
    """Put samples with times of their own into the data of `folder`, before `running` is called with it.

    `openmetrics` is the text format with a timestamp (Unix seconds) after each value and `# EOF` at its end; promtool
    makes blocks of it. Raises ClusterError with promtool's words when it is malformed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "history.om"
    source.write_text(openmetrics)
    shell.run(
        [str(programs.promtool()), "tsdb", "create-blocks-from", "openmetrics", str(source), str(folder / "data")]
    )
