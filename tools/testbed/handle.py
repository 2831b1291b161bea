"""One DSDDeployment as a test sees it: its pods, its engine, its status, its schedule.

`Handle` asks the API server and the pods each time; it keeps no state of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dsd_runtime.schedule import ScheduleRange, schedule_hash
from tools.testbed.engine import Engine, pod_url
from tools.testbed.kube import Json, Kube
from tools.testbed.manifests import ranges_of
from tools.testbed.waiting import wait_for

START_TIMEOUT: Final = 420.0
"""Seconds for an engine to become Ready: half a minute alone, minutes when several start on two cores."""

CHANGE_TIMEOUT: Final = 60.0
"""Seconds for anything that starts no engine."""

DEPLOYMENT_LABEL: Final = "dsd-operator.io/deployment"


@dataclass(frozen=True)
class Handle:
    """The DSDDeployment `namespace/name`."""

    kube: Kube
    namespace: str
    name: str

    def resource(self) -> Json:
        """The resource; it must exist."""
        found = self.kube.get("DSDDeployment", self.namespace, self.name)
        if found is None:
            raise LookupError(f"DSDDeployment {self.namespace}/{self.name} does not exist")
        return found

    def status(self) -> Json:
        """Its status; empty before the operator saw it."""
        status: Json = self.resource().get("status") or {}
        return status

    def condition(self, kind: str) -> Json:
        """One condition of the current generation; empty when it is not there."""
        return current_condition(self.resource(), kind)

    def child(self, kind: str) -> Json:
        """The one child of a kind (Deployment, ConfigMap, Service, ServiceAccount)."""
        (found,) = self.children(kind)
        return found

    def children(self, kind: str) -> list[Json]:
        """Objects of a kind that carry this deployment's label."""
        return self.kube.list(kind, self.namespace, f"{DEPLOYMENT_LABEL}={self.label}")

    @property
    def label(self) -> str:
        """The label value; the names used here are short and valid, so it is the name itself."""
        return self.name

    def events(self) -> list[Json]:
        """The Events about this very resource, not about an earlier one of its name."""
        uid = self.resource()["metadata"]["uid"]
        return [event for event in self.kube.list("Event", self.namespace) if event["involvedObject"]["uid"] == uid]

    def pods(self) -> list[Json]:
        """Pods that are not being deleted."""
        return [pod for pod in self.children("Pod") if "deletionTimestamp" not in pod["metadata"]]

    def pod(self) -> Json:
        """The only pod."""
        (found,) = self.pods()
        return found

    def engine(self) -> Engine:
        """The engine of the only pod."""
        return Engine(pod_url(self.pod()["status"]["podIP"]))

    def audience(self) -> str:
        """What a token for this deployment's pods is made out to."""
        return f"dsd-operator.io/{self.namespace}/{self.name}"

    def patch(self, spec: Json) -> Json:
        """Merge-patch the spec; returns the resource as the API server answered it."""
        return self.kube.patch("DSDDeployment", self.namespace, self.name, {"spec": spec})

    def set_schedule(self, schedule: Sequence[ScheduleRange]) -> int:
        """Change the schedule; returns the generation that holds it."""
        return int(self.patch({"schedule": ranges_of(schedule)})["metadata"]["generation"])

    def wait_ready(self, timeout: float = START_TIMEOUT) -> Json:
        """Wait until the status says Ready for the current generation; returns the resource."""
        what = f"DSDDeployment {self.namespace}/{self.name} to be Ready"
        return wait_for(what, self.resource, lambda r: is_ready(r), timeout, 0.5)

    def wait_applied(self, schedule: Sequence[ScheduleRange], timeout: float = CHANGE_TIMEOUT) -> Json:
        """Wait until `.status.schedule` says that all pods use `schedule`; returns the status."""
        what = f"{self.namespace}/{self.name}: .status.schedule to show {schedule_hash(schedule)} on all pods"
        resource = wait_for(what, self.resource, lambda r: is_applied(r, schedule_hash(schedule)), timeout, 0.1)
        status: Json = resource["status"]
        return status


def current_condition(resource: Json, kind: str) -> Json:
    """A condition that speaks of the resource's current generation; empty when there is none."""
    conditions: list[Json] = (resource.get("status") or {}).get("conditions", [])
    generation = resource["metadata"]["generation"]
    return next((c for c in conditions if c["type"] == kind and c.get("observedGeneration") == generation), {})


def is_ready(resource: Json) -> bool:
    """Whether the condition Ready is True and speaks of the current generation."""
    return current_condition(resource, "Ready").get("status") == "True"


def is_applied(resource: Json, wanted: str) -> bool:
    """Whether the status says that every pod uses the schedule with hash `wanted`, as of the current generation."""
    schedule = (resource.get("status") or {}).get("schedule") or {}
    return (
        schedule.get("observedGeneration") == resource["metadata"]["generation"]
        and schedule.get("hash") == wanted
        and schedule.get("podsTotal", 0) > 0
        and schedule.get("podsApplied") == schedule.get("podsTotal")
    )


def restarts(pod: Json) -> int:
    """Restarts of the engine container."""
    return sum(c["restartCount"] for c in pod["status"].get("containerStatuses", []) if c["name"] == "engine")


def identity(pod: Json) -> tuple[str, int]:
    """What changes when a pod is replaced or its engine restarted: the UID and the engine's restarts."""
    return pod["metadata"]["uid"], restarts(pod)


def names_of(objects: Iterable[Json]) -> set[str]:
    """Names of objects."""
    return {found["metadata"]["name"] for found in objects}
