"""The process around it all: it starts before its API server, and ends when it is told to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dsd_operator import app
from dsd_operator.cluster.errors import Retry
from tests.unit.control.test_client import write_kubeconfig

SETTINGS = {
    "DSD_OPERATOR_RUNTIME_IMAGE": "image",
    "DSD_OPERATOR_NAMESPACE": "ns",
    "DSD_OPERATOR_SERVICE_ACCOUNT": "sa",
    "DSD_OPERATOR_METRICS_PORT": "0",
    "DSD_OPERATOR_HEALTH_PORT": "0",
    "PYTHONUNBUFFERED": "1",
}


def start(kubeconfig: Path) -> "subprocess.Popen[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-m", "dsd_operator"],
        env=environment | SETTINGS | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_waits_for_the_api_server_and_stops_in_order(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", "token")
    with start(tmp_path / "kubeconfig") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "Waiting for dsddeployments.dsd-operator.io" in line:
                break
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_without_any_configuration_it_says_what_it_tried(tmp_path: Path) -> None:
    with start(tmp_path / "missing") as process:
        assert process.stderr is not None
        text = process.stderr.read()
        assert process.wait(30) == 2
    assert f"from {tmp_path / 'missing'}" in text
    assert "Traceback" not in text


class FakeApi:
    """Serves the CRD at the third look."""

    def __init__(self) -> None:
        self.looks = 0

    async def serves(self, _: object) -> bool:
        self.looks += 1
        if self.looks == 1:
            raise Retry(0, "connection refused")
        return self.looks == 3


async def test_the_crd_may_come_later(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(app, "_LOOK_FOR_CRD_SECONDS", 0)
    api = FakeApi()
    await app._wait_for_crd(api)  # type: ignore[arg-type]
    assert api.looks == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"], "said once"
