"""What can be wrong between the command and the cluster, in words and without a trace."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.kubectl.tool import Dsd
from tools.cluster.api import ApiOnlyCluster

pytestmark = pytest.mark.integration


@pytest.fixture
def kubeconfig(cluster: ApiOnlyCluster) -> Any:
    """The administrator's, as plain data."""
    return yaml.safe_load(cluster.kubeconfig.read_text())


def said(directory: Path, content: Any, *arguments: str) -> str:
    """What the command says with this kubeconfig; it must fail."""
    path = directory / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return Dsd(path, "default")(*arguments, "status", code=1).stderr


def test_no_answer(tmp_path: Path, kubeconfig: Any) -> None:
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    words = said(tmp_path, kubeconfig)
    assert "https://127.0.0.1:9 cannot be reached: Connection refused" in words
    assert "kubectl cluster-info" in words


def test_a_name_that_is_not_known(tmp_path: Path, kubeconfig: Any) -> None:
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://no-such-host.invalid:6443"
    assert "cannot be reached" in said(tmp_path, kubeconfig)


def test_a_certificate_that_is_not_trusted(tmp_path: Path, kubeconfig: Any) -> None:
    entry = kubeconfig["clusters"][0]["cluster"]
    entry.pop("certificate-authority", None)
    entry.pop("certificate-authority-data", None)
    assert "is not trusted" in said(tmp_path, kubeconfig)


def test_credentials_that_are_not_accepted(tmp_path: Path, kubeconfig: Any) -> None:
    kubeconfig["users"][0]["user"] = {"token": "nonsense"}
    assert "does not accept your credentials" in said(tmp_path, kubeconfig)


def test_a_login_program_that_fails(tmp_path: Path, kubeconfig: Any) -> None:
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login", "interactiveMode": "Never"}
    kubeconfig["users"][0]["user"] = {"exec": program}
    words = said(tmp_path, kubeconfig)
    assert "credentials" in words or "may not" in words
    assert "no-such-login" in words


def test_contexts(tmp_path: Path, kubeconfig: Any) -> None:
    name = kubeconfig["contexts"][0]["name"]
    assert f"has no context 'prod'\nIt has: {name}." in said(tmp_path, kubeconfig, "--context", "prod")
    del kubeconfig["current-context"]
    assert "names no current context" in said(tmp_path, kubeconfig)


@pytest.mark.parametrize("content", ["", "][", "a: b", "clusters: 7"])
def test_a_broken_kubeconfig(tmp_path: Path, content: str) -> None:
    assert "the kubeconfig" in said(tmp_path, content)


def test_no_kubeconfig(tmp_path: Path) -> None:
    words = Dsd(tmp_path / "missing", "default")("status", code=1).stderr
    assert "there is no kubeconfig" in words
    assert "--kubeconfig" in words


def test_the_crd_is_missing(cluster: ApiOnlyCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real API server, asked for a group that it does not have."""
    monkeypatch.setattr(
        "kubectl_dsd.kinds._PATHS", {"DSDDeployment": ("/apis/other.example/v1alpha1", "dsddeployments")}
    )
    for arguments in (["status"], ["status", "demo"], ["explain", "demo"], ["schedule", "show", "demo"]):
        words = Dsd(cluster.kubeconfig, "default")(*arguments, code=1).stderr
        assert "the CRD dsddeployments.dsd-operator.io is not installed" in words


def test_a_namespace_that_is_not_there(cluster: ApiOnlyCluster) -> None:
    words = Dsd(cluster.kubeconfig, "nowhere")("status", "demo", code=1).stderr
    assert "there is no namespace 'nowhere'" in words


def test_an_end_by_the_reader_is_quiet(cluster: ApiOnlyCluster) -> None:
    """`| head -1` closes the pipe."""
    program = Path(sys.executable).parent / "kubectl-dsd"
    with subprocess.Popen(
        [program, "--kubeconfig", cluster.kubeconfig, "status", "-A"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate()
    assert b"Traceback" not in errors
    assert b"Exception" not in errors
