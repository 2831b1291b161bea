"""The states that a scheduler, a registry, a kubelet, the kernel or vLLM make by themselves: as the table says.

None of these engines ever serves, so most need no vLLM: a `sitecustomize` in the place of the start hangs, or takes
memory. All are applied at once, and each goes when its test is over. tests/integration/test_states.py has the others.
"""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from dsd_runtime.schedule import from_triples
from tests.states import check_events, named, shows, untold
from tools.cluster.api import full_node_kubeconfig, kubectl
from tools.testbed import manifests
from tools.testbed.handle import START_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS

pytestmark = pytest.mark.e2e

NAMESPACE: Final = "dsd-states"
SCHEDULE: Final = from_triples([(1, 64, 3)])

STARTS: Final = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
if os.environ.get("START") == "hang":
    print("loading, and loading", flush=True)
    time.sleep(3600)
if os.environ.get("START") == "eat":
    eaten = [bytearray(1 << 24) for _ in range(256)]
"""
"""Stands in the way of the engine's start, as Python's own hook for that. Exits at once when told to end."""


@dataclass
class SlowRegistry:
    """Takes connections on the loopback, which the node's containerd uses plain HTTP on, and never answers."""

    _socket: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _open: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> "SlowRegistry":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        for each in (self._socket, *self._open):
            each.close()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _accept(self) -> None:
        try:
            while True:
                self._open.append(self._socket.accept()[0])
        except OSError:
            return


def started(start: str, **spec: Any) -> Json:
    """An engine that starts with `STARTS`."""
    env = [{"name": "PYTHONPATH", "value": "/starts"}, {"name": "START", "value": start}]
    mount = {"name": "starts", "mountPath": "/starts"}
    volume = {"name": "starts", "configMap": {"name": "starts"}}
    pod = {"containers": [{"name": "engine", "volumeMounts": [mount]}], "volumes": [volume]}
    return {"engine": {"env": env}, "podTemplate": {"spec": pod}, **spec}


def crashing(image: str) -> Json:
    """An init container of somebody else that never gets through."""
    agent = {"name": "agent", "image": image, "command": ["sh", "-c", "echo no licence; exit 3"]}
    agent["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return {"podTemplate": {"spec": {"initContainers": [agent]}}}


Scene = Callable[[Installation, SlowRegistry], Json]

SCENES: Final[Mapping[str, Scene]] = {
    "model not found": lambda *_: {"model": {"name": "/models/none"}},
    "argument invalid": lambda *_: {"engine": {"extraArgs": ["--kv-cache-dtype=nonsense"]}},
    "start-up too slow": lambda *_: started("hang", startup={"timeoutSeconds": 30}),
    "loading": lambda *_: started("hang"),
    "out of memory": lambda *_: started("eat", resources={"limits": {"memory": "256Mi"}}),
    "unschedulable": lambda *_: {"resources": {"limits": {"nvidia.com/gpu": 1}}},
    "pulling": lambda _, slow: {"engine": {"image": f"{slow.address}/acme/slow:1"}},
    "image cannot be pulled": lambda site, _: {"engine": {"image": f"{registry_of(site.runtime_image)}/acme/absent:1"}},
    "Secret missing": lambda *_: {"model": {"name": "acme/x", "tokenSecretRef": {"name": "absent", "key": "token"}}},
    "crash-looping": lambda site, _: crashing(site.runtime_image),
}


def registry_of(image: str) -> str:
    """The registry's address in an image reference."""
    return image.partition("/")[0]


@pytest.fixture(scope="module")
def scenes(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Kube]:
    """All that the selected tests need, at once."""
    chosen = (item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec"))
    names = [name for name in chosen if name in SCENES]
    kube = installation.kube
    kube.remove_namespace(NAMESPACE, 120)
    kube.apply(manifests.namespace(NAMESPACE))
    starts = {"metadata": {"name": "starts", "namespace": NAMESPACE}, "data": {"sitecustomize.py": STARTS}}
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", **starts})
    with SlowRegistry() as slow:
        for name in names:
            kube.apply(resource(name, SCENES[name](installation, slow)))
        yield kube
    kube.delete("Namespace", None, NAMESPACE)


def resource(name: str, changes: Json) -> Json:
    """A small deployment with these changes of its spec."""
    made = manifests.dsd_deployment(NAMESPACE, label(name), "none", DRAFTERS["ngram"], SCHEDULE)
    spec = {key: made["spec"][key] for key in ("model", "drafter", "schedule")}
    return {**made, "spec": {**spec, **changes}}


def label(name: str) -> str:
    """A state's name as a resource's."""
    return name.lower().replace(" ", "-")


LONG: Final = frozenset({"argument invalid", "start-up too slow"})
"""Another import of vLLM, and more than half a minute of patience: for `make test-long`."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in SCENES])
def test_state(scenes: Kube, name: str) -> None:
    state, handle = named(name), Handle(scenes, NAMESPACE, label(name))
    try:
        found = wait_for(f"the state {name}", handle.resource, lambda r: shows(r, state), START_TIMEOUT, 0.2)
        events = wait_for("its Events", handle.events, lambda e: not untold(e, found["status"]), 60, 0.2)
        check_events(events, found["status"], state)
    finally:
        scenes.delete("DSDDeployment", NAMESPACE, label(name))  # a crash loop costs the others' time


def test_kubectl_waits_for_ready(shared: Handle) -> None:
    """It looks at a condition only where that speaks of the current spec, as ours do."""
    wait = ["wait", f"dsd/{shared.name}", "--for=condition=Ready", "--timeout=60s", "-n", shared.namespace]
    command = [str(kubectl()), "--kubeconfig", str(full_node_kubeconfig()), *wait]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "condition met" in done.stdout
    assert shows(shared.resource(), named("ready"))
