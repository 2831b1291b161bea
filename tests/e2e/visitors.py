"""Pods that try to reach an engine from other places of the cluster: a client, a stranger, a Prometheus."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tools.cluster.api import full_node_kubeconfig, kubectl
from tools.testbed import manifests
from tools.testbed.handle import CHANGE_TIMEOUT
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

_NAME: Final = "visitor"
_TRY_SECONDS: Final = 2
_TRY: Final = (
    "import sys, urllib.request\n"
    "open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open\n"
    f"open(sys.argv[1], timeout={_TRY_SECONDS}).read()\n"
)


@dataclass(frozen=True)
class Visitor:
    """A pod that runs, in this namespace."""

    namespace: str

    def reaches(self, url: str) -> bool:
        """Whether it gets an answer within 2 s."""
        command = [str(kubectl()), "--kubeconfig", str(full_node_kubeconfig()), "exec", "-n", self.namespace, _NAME]
        done = subprocess.run(
            [*command, "--", "python3", "-c", _TRY, url], capture_output=True, text=True, check=False, timeout=60
        )
        blocked = "timed out" in done.stderr
        assert blocked or done.returncode == 0, done.stderr
        return not blocked


@contextmanager
def visitors(kube: Kube, image: str, *namespaces: str) -> Iterator[Mapping[str, Visitor]]:
    """One in each of these namespaces, which are made where they are missing and then go with the block."""
    made = [name for name in namespaces if kube.get("Namespace", None, name) is None]
    try:
        for name in made:
            kube.apply(manifests.namespace(name))
        for name in namespaces:
            kube.apply(_pod(name, image))
        for name in namespaces:
            wait_for(f"the visitor in {name}", lambda n=name: kube.get("Pod", n, _NAME), _runs, CHANGE_TIMEOUT)  # type: ignore[misc]
        yield {name: Visitor(name) for name in namespaces}
    finally:
        for name in namespaces:
            kube.delete("Pod", name, _NAME, gracePeriodSeconds=0)
        for name in made:
            kube.delete("Namespace", None, name)


def _runs(pod: Json | None) -> bool:
    return bool(pod and pod.get("status", {}).get("phase") == "Running")


def _pod(namespace: str, image: str) -> Json:
    container = {"name": _NAME, "image": image, "command": ["python3", "-c", "import time; time.sleep(3600)"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _NAME, "namespace": namespace, "labels": {"app": _NAME}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False},
    }
