"""Containers that somebody else puts into the pods: the engine is found by its name, and the one at fault is named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.webhook import Webhook
from tests.integration.world import SECOND, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

PROXY: Final = {"name": "proxy", "image": "registry.example/proxy:1"}
AGENT: Final = {"name": "agent", "image": "registry.example/agent:1", "restartPolicy": "Always"}
IMAGES: Final = {"image": "i", "imageID": "i"}


def inject(pod: Json) -> list[Json]:
    """A proxy as the first container, and a native sidecar: as meshes do it."""
    if any(container["name"] == "proxy" for container in pod["spec"]["containers"]):
        return []
    return [
        {"op": "add", "path": "/spec/containers/0", "value": PROXY},
        {"op": "add", "path": "/spec/initContainers", "value": [AGENT]},
    ]


@pytest.fixture
def mesh(world: World, tmp_path: Path) -> Iterator[World]:
    """A namespace whose pods get more containers."""
    with Webhook(tmp_path / "webhook", inject) as made:
        configuration = made.configuration(world.namespace, "pods", "MutatingWebhookConfiguration")
        world.apply(configuration)

        def in_force() -> bool:
            world.kubectl("run", "probe", "--image=i", "--dry-run=server")
            return made.calls > 0

        wait_for("the webhook to be asked", in_force, bool, 30, 0.1)
        yield world
        world.kubectl("delete", "mutatingwebhookconfiguration", configuration["metadata"]["name"])


def running(name: str, restarts: int = 0, ready: bool = True) -> Json:
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {"name": name, **IMAGES, "ready": ready, "started": True, "restartCount": restarts, "state": started}


def waiting(name: str, reason: str, message: str = "", **more: Any) -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": name, **IMAGES, "ready": False, "started": False, "restartCount": 0, "state": state, **more}


def test_who_is_at_fault_is_named_and_the_engine_is_found(mesh: World) -> None:
    operator = mesh.operator()
    mesh.create()
    (pod,) = mesh.wait_pods(1)
    assert [container["name"] for container in pod["spec"]["containers"]] == ["proxy", "engine"]
    assert [container["name"] for container in pod["spec"]["initContainers"]] == ["agent"]
    engine = mesh.engine(pod)
    address = engine.address
    mesh.set_pod(pod, address, containerStatuses=[running("proxy"), running("engine")],
                 initContainerStatuses=[running("agent")])  # fmt: skip
    mesh.wait_condition("Ready", status="True")

    crash = {"terminated": {"exitCode": 7, "reason": "Error", "message": "no route to the control plane"}}
    fallen = waiting("proxy", "CrashLoopBackOff", lastState=crash) | {"restartCount": 9}
    mesh.set_pod(pod, address, ready=False, containerStatuses=[fallen, running("engine")],
                 initContainerStatuses=[running("agent")])  # fmt: skip
    said = mesh.wait_condition("Ready", status="False", reason="CrashLoopBackOff")["message"]
    assert "container proxy: exits with code 7: no route to the control plane" in said
    assert operator.metric("dsd_operator_engine_restarts_total") == 0, "a sidecar's restarts are not the engine's"
    mesh.schedule(SECOND)
    mesh.wait_stored(SECOND)

    behind = [waiting("proxy", "PodInitializing"), waiting("engine", "PodInitializing")]
    mesh.set_pod(pod, address, ready=False, containerStatuses=behind,
                 initContainerStatuses=[waiting("agent", "ErrImagePull", "401 Unauthorized")])  # fmt: skip
    said = mesh.wait_condition("Ready", status="False", reason="ImagePullBackOff")["message"]
    assert "container agent: ErrImagePull: 401 Unauthorized" in said
    assert "PodInitializing" not in said

    mesh.set_pod(pod, address, containerStatuses=[running("proxy", 9), running("engine")],
                 initContainerStatuses=[running("agent", 3)])  # fmt: skip
    mesh.wait_condition("Ready", status="True")
    mesh.wait_schedule(1)
    assert operator.metric("dsd_operator_engine_restarts_total") == 0
