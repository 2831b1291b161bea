"""`kubectl dsd` on real engines: what it shows is what they use, a change reaches them, real failures are explained."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime.schedule import from_triples, schedule_hash
from tests.e2e.fleet import NAMESPACE, PROMPTS, Fleet
from tools.cluster.api import full_node_kubeconfig, kubectl
from tools.testbed import manifests
from tools.testbed.engine import in_use
from tools.testbed.handle import START_TIMEOUT, Handle, identity
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET

pytestmark = pytest.mark.e2e

_BROKEN: Final[Mapping[str, tuple[Json, str, str, str]]] = {
    "no-such-model": (
        {"model": {"name": f"{manifests.MODELS_MOUNT}/nothing-here"}},
        "ModelNotFound",
        "there is no such model",
        "spec.model.name",
    ),
    "no-such-image": (
        {"engine": {"image": "127.0.0.1:1/no/such:image"}},
        "ImagePullBackOff",
        "the image 127.0.0.1:1/no/such:image cannot be pulled",
        "spec.engine.image",
    ),
    "no-such-node": (
        {"resources": {"limits": {"nvidia.com/gpu": 1}}},
        "Unschedulable",
        "no node offers nvidia.com/gpu at all",
        "device plugin",
    ),
}
"""Name -> (what is changed in the spec, the reason, words of the cause, words of what to do)."""


def dsd(*arguments: str, code: int = 0) -> str:
    """The real kubectl with the installed plugin; what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), str(kubectl().parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(full_node_kubeconfig())}
    command = ["kubectl", "dsd", *arguments, "-n", NAMESPACE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def told(*arguments: str, code: int = 0) -> Any:
    """The same with -o json."""
    return json.loads(dsd(*arguments, "-o", "json", code=code))


@pytest.fixture(scope="module")
def broken(fleet: Fleet) -> Iterator[Fleet]:
    """Deployments that cannot start, each for a reason of its own; made together, for a crash takes its time."""
    for name, (change, *_) in _BROKEN.items():
        manifest = manifests.dsd_deployment(NAMESPACE, name, TARGET, DRAFTERS["ngram"], from_triples([(1, 64, 1)]))
        for field, value in change.items():
            manifest["spec"][field] = {**manifest["spec"].get(field, {}), **value}
        fleet.kube.apply(manifest)
    yield fleet
    for name in _BROKEN:
        fleet.kube.delete("DSDDeployment", NAMESPACE, name)


def test_what_is_shown_is_what_the_engine_uses(broken: Fleet, shared: Handle) -> None:  # noqa: ARG001 - they start meanwhile
    shared.engine().complete(PROMPTS[0], 8)
    status = shared.engine().status()
    (pod,) = told("status", shared.name)["pods"]
    assert (pod["name"], pod["ready"], pod["inSync"]) == (shared.pod()["metadata"]["name"], True, True)
    assert pod["node"]
    assert {pod["schedule"]["hash"]} == in_use(status)
    assert pod["numSpeculativeTokens"] == [core.num_speculative_tokens for core in status.engines]
    shown = told("schedule", "show", shared.name)
    assert shown["envelope"]["allowedTokens"] == list(status.envelope.allowed_tokens if status.envelope else ())


def test_set_reaches_the_engine_without_a_restart(shared: Handle) -> None:
    pod = identity(shared.pod())
    wanted = from_triples([(1, 6, 1), (7, 64, 3)])
    found = told("schedule", "set", shared.name, "1-6:1,7-64:3")
    assert (found["changed"], found["pods"]["applied"], found["pods"]["total"]) == (True, 1, 1)
    assert in_use(shared.engine().status()) == {schedule_hash(wanted)}
    assert identity(shared.pod()) == pod
    assert told("schedule", "diff", shared.name, "--exit-code")["same"] is True


def test_the_engine_remembers_what_it_used(shared: Handle) -> None:
    told("schedule", "set", shared.name, "1-:2")
    told("schedule", "set", shared.name, "1-:0")
    found = told("schedule", "history", shared.name)
    assert [[r["numSpeculativeTokens"] for r in change["ranges"]] for change in found["changes"][-2:]] == [[2], [0]]
    assert all(change["source"] == "http" for change in found["changes"][-2:])
    assert "remembers since its start" in found["limits"][0]


def test_nothing_is_wrong_with_an_engine_that_serves(shared: Handle) -> None:
    shared.wait_ready()
    found = told("explain", shared.name, "--exit-code")
    assert found["verdict"] == "nothing wrong"
    assert found["unseen"] == []


@pytest.mark.parametrize("name", _BROKEN)
def test_a_real_failure_is_explained(broken: Fleet, name: str) -> None:  # noqa: ARG001
    _, reason, cause, fix = _BROKEN[name]
    first = wait_for(
        f"{name} to fail with {reason}",  # the small node may first have no room for it
        lambda: told("explain", name)["findings"][0],
        lambda f: f["reason"] == reason,
        START_TIMEOUT,
        1,
    )
    assert first["weight"] == "error"
    assert cause in first["cause"]
    assert fix in first["fix"]
    assert first["said"], "the words of the kubelet, the scheduler or the engine"
    assert dsd("explain", name, "--exit-code", code=3)
