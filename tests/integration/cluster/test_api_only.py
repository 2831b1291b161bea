"""The API-only mode for real: side by side, over a restart, after a crash."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.cluster import api_only, components, paths, waiting
from tools.cluster.api import ApiOnlyCluster, kubectl
from tools.cluster.paths import Layout
from tools.cluster.processes import Identity, is_alive

pytestmark = pytest.mark.integration
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager")


def run_kubectl(kubeconfig: Path, *arguments: str) -> str:
    command = [str(kubectl()), "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def identities(layout: Layout) -> list[Identity]:
    found = [components.daemon(layout, name).identity() for name in _COMPONENTS]
    return [identity for identity in found if identity is not None]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    api_only.stop(tmp_path / "cluster")


def test_two_side_by_side_have_objects_of_their_own() -> None:
    with ApiOnlyCluster() as one, ApiOnlyCluster() as other:
        run_kubectl(one.kubeconfig, "create", "configmap", "mine")
        assert "configmap/mine" in run_kubectl(one.kubeconfig, "get", "configmaps", "-o", "name")
        assert "configmap/mine" not in run_kubectl(other.kubeconfig, "get", "configmaps", "-o", "name")
        running = [*identities(Layout(one.kubeconfig.parent)), *identities(Layout(other.kubeconfig.parent))]
        assert len(running) == 2 * len(_COMPONENTS)
    assert not any(map(is_alive, running))


def test_apiserver_can_go_and_come_back_with_its_data() -> None:
    with ApiOnlyCluster() as cluster:
        server = cluster.server
        run_kubectl(cluster.kubeconfig, "create", "namespace", "kept")
        cluster.stop_apiserver()
        with pytest.raises(subprocess.CalledProcessError):
            run_kubectl(cluster.kubeconfig, "get", "namespaces")
        cluster.start_apiserver()
        assert cluster.server == server
        run_kubectl(cluster.kubeconfig, "get", "namespace", "kept")
        run_kubectl(cluster.kubeconfig, "create", "serviceaccount", "reader")
        review = json.loads(run_kubectl(cluster.kubeconfig, "auth", "whoami", "-o", "json"))
        assert "system:masters" in review["status"]["userInfo"]["groups"]
        token = run_kubectl(cluster.kubeconfig, "create", "token", "reader", "--audience", "somebody").strip()
        assert token.count(".") == 2


def test_starting_again_keeps_the_cluster_and_a_killed_one_is_replaced(state: Path) -> None:
    layout = Layout(state)
    first = api_only.start(state)
    run_kubectl(layout.kubeconfig, "create", "configmap", "mine")
    before = identities(layout)
    assert api_only.start(state).server == first.server
    assert identities(layout) == before
    for identity in before:
        os.kill(identity.pid, signal.SIGKILL)
    api_only.start(state)
    assert all(is_alive(identity) for identity in identities(layout))
    assert "configmap/mine" not in run_kubectl(layout.kubeconfig, "get", "configmaps", "-o", "name")
    api_only.stop(state)
    assert [path.name for path in state.iterdir()] == ["logs"]


def test_cluster_of_a_killed_test_run_is_removed_by_the_next() -> None:
    script = "import sys, time; from tools.cluster.api import ApiOnlyCluster\n"
    script += "with ApiOnlyCluster() as one: print(one.kubeconfig, flush=True); time.sleep(600)\n"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=paths.REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        abandoned = Layout(Path(run.stdout.readline().strip()).parent)
        running = identities(abandoned)
        run.kill()
    assert len(running) == len(_COMPONENTS)
    assert all(map(is_alive, running))
    with ApiOnlyCluster():
        assert waiting.poll(lambda: not any(map(is_alive, running)), 10)
        assert not abandoned.root.exists()


def test_a_component_that_cannot_start_is_named_with_its_log(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ["sh", "-c", "echo no such flag; exit 1"]
    monkeypatch.setattr("tools.cluster.control_plane.apiserver_command", lambda _: broken)
    with pytest.raises(
        components.ComponentError, match=r"kube-apiserver ended\.[\s\S]*no such flag[\s\S]*The whole log: "
    ):
        api_only.start(state)
    assert identities(Layout(state)) == []
