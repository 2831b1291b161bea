"""The engines of an end-to-end session: one namespace, one DSDDeployment per method, the reference pod."""

from collections.abc import Iterable, Mapping
from typing import Final

from dsd_runtime.schedule import from_triples
from tools.testbed import manifests
from tools.testbed.engine import Engine, Tokens, pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, START_TIMEOUT, Handle
from tools.testbed.install import Installation
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET, prompts

NAMESPACE: Final = "dsd-e2e"
REFERENCE: Final = "reference"
MAX_NEW_TOKENS: Final = 48
PROMPTS: Final = prompts(12)
FIRST_SCHEDULE: Final = from_triples([(1, 4, 3), (5, 64, 1)])

Oracle = Mapping[Tokens, Tokens]
"""Prompt to its greedy continuation without speculation."""


class Fleet:
    """Starts engines and hands them out; applying again what runs already changes nothing."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.kube = installation.kube
        self._applied: set[str] = set()

    def start(self, methods: Iterable[str]) -> None:
        """Start the reference engine and those of `methods`, all at once."""
        self.kube.apply(manifests.reference_pod(NAMESPACE, REFERENCE, TARGET, self.installation.runtime_image))
        for method in methods:
            self._apply(method)

    def ready(self, method: str) -> Handle:
        """The deployment of `method`, Ready."""
        if method not in self._applied:
            self._apply(method)
        handle = self.handle(method)
        handle.wait_ready()
        return handle

    def handle(self, method: str) -> Handle:
        """The deployment of `method`, whatever its state."""
        return Handle(self.kube, NAMESPACE, name_of(method))

    def _apply(self, method: str) -> None:
        manifest = manifests.dsd_deployment(NAMESPACE, name_of(method), TARGET, DRAFTERS[method], FIRST_SCHEDULE)
        self.kube.apply(manifest)
        self._applied.add(method)

    def oracle(self) -> Oracle:
        """Ask the engine without speculation, then let it go: its memory and its core are worth something."""
        pod = wait_for(
            "the reference engine to run",
            lambda: self.kube.get("Pod", NAMESPACE, REFERENCE) or {},
            lambda found: bool(found.get("status", {}).get("podIP")),
            CHANGE_TIMEOUT,
        )
        engine = Engine(pod_url(pod["status"]["podIP"]))
        wait_for("the reference engine to serve", engine.healthy, bool, START_TIMEOUT, 0.5)
        answers = {prompt: engine.complete(prompt, MAX_NEW_TOKENS) for prompt in PROMPTS}
        self.kube.delete("Pod", NAMESPACE, REFERENCE)
        return answers


def name_of(method: str) -> str:
    """The resource's name: a method's name with what a Kubernetes name allows."""
    return method.replace("_", "-")
