"""One namespace, the DSDDeployment `demo` in it, and what a test does to them."""

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from dsd_operator.render.config_map import read
from dsd_runtime.protocol import ConfigFile
from tests.integration.engine_stand_in import StandIn
from tests.integration.operator_process import OperatorProcess
from tools.cluster.api import kubectl
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

NAME: Final = "demo"
CHILDREN: Final = ("ServiceAccount", "ConfigMap", "Service", "Deployment")
SECONDS: Final = 20.0
"""Deadline for anything the operator does by itself; it takes a fraction of a second."""

Triples = list[tuple[int, int, int]]

FIRST: Final[Triples] = [(1, 8, 3), (9, 256, 1)]
SECOND: Final[Triples] = [(1, 4, 2), (5, 256, 0)]
THIRD: Final[Triples] = [(1, 256, 1)]

_SPEC: Final[Json] = {
    "model": {"name": "acme/tiny-llama"},
    "drafter": {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}},
}

_addresses = map(IPv4Address, itertools.count(int(IPv4Address(f"127.{16 + os.getpid() % 200}.77.1"))))
"""One for each stand-in: pods of one port differ by their address. Linux has the whole of 127/8 on its loopback; the
second part keeps runs apart that go on at the same time."""


def ranges(triples: Triples) -> list[Json]:
    """A schedule as a resource spells it."""
    names = ("startBatchSize", "endBatchSize", "numSpeculativeTokens")
    return [dict(zip(names, triple, strict=True)) for triple in triples]


def spec(schedule: Triples = FIRST, **changes: Any) -> Json:
    """A small valid spec."""
    return {**deepcopy(_SPEC), "schedule": ranges(schedule), **changes}


class World:
    """A namespace of its own; everything in it ends with the test."""

    def __init__(self, kube: Kube, admin: Path, operator_kubeconfig: Path, namespace: str, directory: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        self._admin = admin
        self._operator_kubeconfig = operator_kubeconfig
        self._directory = directory
        self._stack = ExitStack()
        self.operators: list[OperatorProcess] = []

    def __enter__(self) -> "World":
        self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.kube.delete("Namespace", None, self.namespace)

    # The operator

    def operator(self, **settings: str) -> OperatorProcess:
        """An operator for this namespace, ready."""
        return self.idle_operator(**settings).start()

    def idle_operator(self, **settings: str) -> OperatorProcess:
        """An operator that has not been started."""
        log = self._directory / f"operator-{len(self.operators)}.log"
        made = OperatorProcess(
            self._operator_kubeconfig, log, settings.pop("WATCH_NAMESPACES", self.namespace), **settings
        )
        self._stack.callback(made.close)
        self.operators.append(made)
        return made

    # The resource

    def create(self, schedule: Triples = FIRST, name: str = NAME, **changes: Any) -> Json:
        """Apply a DSDDeployment."""
        meta = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment", "metadata": meta}
        return self.kube.apply({**body, "spec": spec(schedule, **changes)})

    def patch(self, **changes: Any) -> Json:
        """Merge into its spec."""
        return self.kube.patch("DSDDeployment", self.namespace, NAME, {"spec": changes})

    def schedule(self, triples: Triples) -> Json:
        """Change its schedule."""
        return self.patch(schedule=ranges(triples))

    def resource(self) -> Json:
        """The resource; it must be there."""
        found = self.kube.get("DSDDeployment", self.namespace, NAME)
        assert found is not None, f"there is no DSDDeployment {self.namespace}/{NAME}"
        return found

    def status(self) -> Json:
        """Its status, empty as long as it has none."""
        return self.resource().get("status") or {}

    def condition(self, kind: str) -> Json:
        """One condition of the current generation, empty as long as it is not there."""
        resource = self.resource()
        conditions = (resource.get("status") or {}).get("conditions") or ()
        generation = resource["metadata"]["generation"]
        return next((c for c in conditions if c["type"] == kind and c["observedGeneration"] == generation), {})

    def wait_condition(self, kind: str, **wanted: str) -> Json:
        """Wait until a condition of the current generation has these fields."""
        what = f"condition {kind} with {wanted}"
        return wait_for(what, lambda: self.condition(kind), lambda c: wanted.items() <= c.items(), SECONDS, 0.05)

    def wait_status(self, what: str, until: Callable[[Json], bool]) -> Json:
        """Wait for something in the status."""
        return wait_for(what, self.status, until, SECONDS, 0.05)

    def wait_schedule(self, applied: int, total: int | None = None) -> Json:
        """Wait until so many pods use the schedule of the current generation; returns `status.schedule`."""

        def enough(resource: Json) -> bool:
            schedule = (resource.get("status") or {}).get("schedule") or {}
            counts = (schedule.get("podsApplied"), schedule.get("podsTotal"))
            current = schedule.get("observedGeneration") == resource["metadata"]["generation"]
            return current and counts == (applied, applied if total is None else total)

        found = wait_for(f"{applied} pods with the schedule", self.resource, enough, SECONDS, 0.05)
        schedule: Json = found["status"]["schedule"]
        return schedule

    # The children

    def child(self, kind: str) -> Json | None:
        """A child, None while it is not there."""
        return self.kube.get(kind, self.namespace, NAME)

    def wait_child(self, kind: str, other_than: str = "") -> Json:
        """Wait for a child, one with another uid if need be."""

        def there(found: Json | None) -> bool:
            return found is not None and found["metadata"]["uid"] != other_than

        found = wait_for(f"{kind} {NAME}", lambda: self.child(kind), there, SECONDS, 0.05)
        assert found is not None
        return found

    def wait_children(self) -> dict[str, Json]:
        """Wait for all of them."""
        return {kind: self.wait_child(kind) for kind in CHILDREN}

    def config_file(self) -> ConfigFile | None:
        """What the ConfigMap holds."""
        found = self.child("ConfigMap")
        return read(found) if found is not None else None

    def stored_triples(self) -> Triples:
        """The schedule in the ConfigMap."""
        config = self.config_file()
        return [r.triple() for r in config.ranges] if config is not None else []

    def wait_stored(self, triples: Triples) -> ConfigFile:
        """Wait until the ConfigMap holds this schedule."""
        wait_for(f"the ConfigMap to hold {triples}", self.stored_triples, lambda t: t == triples, SECONDS, 0.05)
        config = self.config_file()
        assert config is not None
        return config

    # The pods

    def engines(self, count: int, unknown: frozenset[str] = frozenset()) -> list[StandIn]:
        """Let stand-ins answer for the Deployment's pods: as the kubelet would, say that they run and are ready."""
        pods = self.wait_pods(count)
        return [self.engine(pod, unknown) for pod in pods]

    def engine(self, pod: Json, unknown: frozenset[str] = frozenset()) -> StandIn:
        """A stand-in for one pod."""
        address = str(next(_addresses))
        made = self._stack.enter_context(StandIn(address, self.config_file))
        made.unknown = unknown
        made.read_file()  # the runtime reads its file before the first request
        self.set_pod(pod, address)
        return made

    def wait_pods(self, count: int) -> list[Json]:
        """Wait until the Deployment's ReplicaSet has made its pods."""
        selector = f"dsd-operator.io/deployment={NAME}"
        pods = wait_for(
            f"{count} pods",
            lambda: self.kube.list("Pod", self.namespace, selector),
            lambda found: len(found) == count,
            SECONDS,
            0.05,
        )
        return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))

    def set_pod(self, pod: Json, address: str, ready: bool = True, **status: Any) -> None:
        """Write a pod's status."""
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        found = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
        self.kubectl(
            "patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": {**found, **status}}),
        )  # fmt: skip

    # The rest

    def events(self) -> list[Json]:
        """Events about the resource."""
        found = self.kube.list("Event", self.namespace)
        return [event for event in found if event["involvedObject"]["kind"] == "DSDDeployment"]

    def wait_event(self, reason: str) -> None:
        """Wait for an Event about the resource; it is posted after the status that it tells of."""
        wait_for(f"an Event {reason}", self.events, lambda found: any(e["reason"] == reason for e in found), SECONDS)

    def versions(self) -> Mapping[str, str]:
        """resourceVersion of the resource, its children and everything else of ours in the namespace."""
        kinds = ("DSDDeployment", *CHILDREN, "ReplicaSet", "Pod")
        found = {kind: self.kube.list(kind, self.namespace) for kind in kinds}
        return {
            f"{kind}/{o['metadata']['name']}": o["metadata"]["resourceVersion"]
            for kind, objects in found.items()
            for o in objects
        }

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """kubectl as the administrator, in this namespace; raises with its words when it fails."""
        command = [str(kubectl()), "--kubeconfig", str(self._admin), "--namespace", self.namespace, *arguments]
        done = subprocess.run(command, input=given, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def apply(self, manifest: Json) -> None:
        """Apply any manifest, in the way that users do."""
        self.kubectl("apply", "-f", "-", given=json.dumps(manifest))
