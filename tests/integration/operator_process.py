"""The operator as a process of its own, with the rights that the chart gives it and no others."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from tools.cluster.ports import free_ports
from tools.testbed.waiting import wait_for

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 15.0

_WITHOUT_PROXY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class OperatorProcess:
    """Started, stopped and killed as often as a test likes. The log holds all runs."""

    def __init__(self, kubeconfig: Path, log: Path, namespaces: str = "", **settings: str) -> None:
        self._metrics_port, self._health_port = free_ports(2)
        self._log = log
        self.module = "dsd_operator"
        self._process: subprocess.Popen[bytes] | None = None
        own = {
            "RUNTIME_IMAGE": "registry.example/dsd-runtime:1",
            "NAMESPACE": "dsd-system",
            "SERVICE_ACCOUNT": "dsd-operator",
            "WATCH_NAMESPACES": namespaces,
            "METRICS_PORT": str(self._metrics_port),
            "HEALTH_PORT": str(self._health_port),
            **settings,
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DSD_OPERATOR_")}
        variables = {f"DSD_OPERATOR_{name}": value for name, value in own.items()}
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._environment = inherited | variables | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": path}

    def run_from(self, checkout: Path) -> None:
        """Run the operator of another checkout, in this one's virtualenv."""
        self._environment["PYTHONPATH"] = os.pathsep.join(str(checkout / part) for part in ("operator", "runtime"))

    def start(self, wait: bool = True) -> "OperatorProcess":
        """Start it, and wait until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.module], env=self._environment, stdout=log, stderr=log
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Wait until /readyz says so."""
        wait_for("the operator to be ready", lambda: self.get(self._health_port, "/readyz"), bool, START_SECONDS, 0.05)

    def terminate(self) -> int:
        """SIGTERM; returns the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as a node that dies does it."""
        self._end(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None, "the operator was never started"
        self._process.send_signal(number)

    def close(self) -> None:
        """End it if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None, "the operator was never started"
        return self._process.pid

    def ready(self) -> bool:
        """Whether /readyz says so now."""
        try:
            return bool(self.get(self._health_port, "/readyz"))
        except OSError:
            return False

    def metrics(self) -> str:
        """The page of /metrics."""
        return self.get(self._metrics_port, "/metrics")

    def health(self) -> str:
        """The answer of /healthz."""
        return self.get(self._health_port, "/healthz")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of this name that carry these labels."""
        families = text_string_to_metric_families(self.metrics())
        samples = (sample for family in families for sample in family.samples)
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

    def writes(self) -> float:
        """Requests to the API server that change something."""
        return sum(self.metric("dsd_operator_api_requests_total", verb=verb) for verb in ("PATCH", "POST"))

    def lines(self) -> list[dict[str, Any]]:
        """The log, one JSON object a line."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def text(self) -> str:
        """The log."""
        return self._log.read_text() if self._log.exists() else ""

    def get(self, port: int, path: str) -> str:
        """A page of the operator; OSError while there is none, or it says that something is wrong."""
        with _WITHOUT_PROXY.open(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return str(response.read().decode())

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None, "the operator was never started"
        self._process.send_signal(number)
        return self._process.wait(STOP_SECONDS)
