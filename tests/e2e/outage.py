"""The operator switched off, and back on."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.testbed.handle import CHANGE_TIMEOUT
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for


@contextmanager
def operator_down(installation: Installation) -> Iterator[None]:
    """No operator runs inside the block; after it one is ready again."""
    scale(installation, 0)
    try:
        yield
    finally:
        scale(installation, 1)


def scale(installation: Installation, replicas: int) -> None:
    """Scale the operator's Deployment and wait until exactly that many of its pods exist and are ready."""
    installation.kube.scale(installation.namespace, installation.deployment, replicas)
    wait_for(
        f"{replicas} operator pods",
        lambda: [(pod["metadata"]["name"], is_ready(pod)) for pod in installation.operator_pods()],
        lambda pods: len(pods) == replicas and all(ready for _, ready in pods),
        2 * CHANGE_TIMEOUT,
    )


def is_ready(pod: Json) -> bool:
    """Whether the pod's Ready condition is True and it is not on its way out."""
    conditions = pod["status"].get("conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
