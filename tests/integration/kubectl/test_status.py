"""`kubectl dsd status`: the state as the API server and the engines have it, for people and for programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.kubectl.tool import Live, squeezed
from tests.integration.world import NAME
from tools.cluster.api import ApiOnlyCluster, kubectl
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration


def plugin_environment(kubeconfig: Path) -> dict[str, str]:
    """Where the real kubectl finds its plugin: on the PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), str(kubectl().parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)}


def test_one_deployment(live: Live) -> None:
    found = live.dsd.json("status", NAME)
    assert {c["type"] for c in found["conditions"]} == {"Available", "Progressing", "ScheduleApplied", "Ready"}
    assert (found["schedule"]["podsApplied"], found["schedule"]["podsTotal"], found["outOfSync"]) == (2, 2, [])
    assert [pod["name"] for pod in found["pods"]] == live.pods
    assert {pod["schedule"]["hash"] for pod in found["pods"]} == {found["schedule"]["hash"]}
    assert [pod["inSync"] for pod in found["pods"]] == [True, True]
    shown = squeezed(live.dsd("status", NAME).stdout)
    assert any(line.startswith(f"{live.pods[0]} none") for line in shown)
    assert "1-8 3" in shown
    assert any(line.startswith(f"wanted: schedule {found['schedule']['hash']}, used by 2 of 2 pods") for line in shown)


def test_many_deployments(live: Live) -> None:
    here = live.dsd.json("status")["items"]
    assert [item["name"] for item in here] == [NAME]
    everywhere = live.dsd.json("status", "-A")["items"]
    assert live.world.namespace in {item["namespace"] for item in everywhere}
    assert squeezed(live.dsd("status", "-A").stdout)[0].startswith("NAMESPACE NAME MODEL METHOD")
    assert live.dsd("status", NAME, "-A", code=2).stderr


def test_a_pod_that_is_behind_is_named(live: Live) -> None:
    lagging = live.engines[0]
    used, lagging.state.current = lagging.state.current, lagging.state._history[0]
    try:
        found = live.dsd.json("status", NAME)
    finally:
        lagging.state.current = used
    assert [entry["pod"] for entry in found["outOfSync"]] == [live.pods[0]]
    assert "it uses schedule" in found["outOfSync"][0]["why"]


def test_a_pod_that_cannot_be_asked_is_the_operator_s_word(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dsd.cluster.ENGINE_PORT", 1)
    monkeypatch.setattr("kubectl_dsd.cluster.Cluster.pod_get.__defaults__", (1, 12.0))
    found = live.dsd.json("status", NAME)
    assert [pod["schedule"] for pod in found["pods"]] == [None, None]
    assert [pod["inSync"] for pod in found["pods"]] == [True, True]
    assert found["pods"][0]["why"].startswith("as the operator says; its engine does not listen")


def test_kubectl_finds_its_plugin_and_watches(live: Live, cluster: ApiOnlyCluster) -> None:
    """The real kubectl, the installed command; a new document for each change, and words for its end."""
    command = ["kubectl", "dsd", "status", NAME, "-n", live.world.namespace, "-w", "-o", "json", "--interval", "0.2"]
    process = subprocess.Popen(command, env=plugin_environment(cluster.kubeconfig), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        live.dsd("schedule", "set", NAME, "1-31:1")
        wanted = live.dsd.json("schedule", "show", NAME)["schedule"]["hash"]
        stream = process.stdout
        wait_for("the change", lambda: json.loads(stream.readline()), lambda s: s["schedule"]["hash"] == wanted, 30)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    assert first["name"] == NAME


def test_names_are_completed(live: Live, cluster: ApiOnlyCluster) -> None:
    """What kubectl's own completion asks for."""
    done = subprocess.run(
        ["kubectl_complete-dsd", "schedule", "set", "-n", live.world.namespace, "de"],
        env=plugin_environment(cluster.kubeconfig), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [NAME, ":4"]
