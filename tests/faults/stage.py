"""A namespace whose operators reach the API server through a proxy, and whose pods are served when they appear."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dsd_operator.cluster.resources import LEADER_WORKER_SET, Resource
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.labels import is_worker
from dsd_operator.render.names import names_for
from tests.faults import final_state, trail
from tests.faults.access import Access, redirect
from tests.faults.proxy import Proxy
from tests.integration.engine_stand_in import StandIn
from tests.integration.world import FIRST, NAME, Triples, World
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

SECONDS: Final = 90.0
"""Deadline for anything that heals: backoffs end at a minute."""

WORKERS: Final = "127.0.89.1"
"""Address of all workers: nobody asks them."""


class Stage(World):
    """As World, with the proxy and what a test of faults asks again and again."""

    def __init__(
        self, kube: Kube, access: Access, operator: Path, namespace: str, directory: Path, proxy: Proxy
    ) -> None:
        through = redirect(operator, proxy.url, directory / f"kubeconfig-{namespace}")
        super().__init__(kube, access.kubeconfig, through, namespace, directory)
        self.proxy = proxy
        self._access = access
        self.served: dict[str, StandIn] = {}
        """By the uid of the pod."""
        self.names: dict[str, str] = {}
        """Of all pods that were served, workers included, by uid."""
        self.moves = False
        """Whether engines move to another workload: in how many steps that grows and shrinks is a matter of time."""

    def look(self, kind: Resource) -> Json | None:
        """A child of any kind, None also where the API server does not know the kind."""
        names = names_for(NAME)
        name = names.group if kind is LEADER_WORKER_SET else names.base
        return self._access.get(kind.path(self.namespace, name))

    def stored_templates(self) -> list[Json]:
        """The ControllerRevisions of the resource; not those of StatefulSets, which take the labels of its pods."""
        query = f"?labelSelector=dsd-operator.io%2Fdeployment%3D{NAME}"
        found = self._access.get(f"/apis/apps/v1/namespaces/{self.namespace}/controllerrevisions{query}")
        items = [item for item in (found or {}).get("items", ()) if _owner(item) == "DSDDeployment"]
        return [{**item, "kind": "ControllerRevision"} for item in items]

    def version(self) -> str:
        """The resourceVersion of the cluster as it is now."""
        found = self._access.get(f"/api/v1/namespaces/{self.namespace}/configmaps")
        assert found is not None
        return str(found["metadata"]["resourceVersion"])

    def pods(self) -> list[Json]:
        """The pods that are there, those on their way out left out."""
        found = self.kube.list("Pod", self.namespace, f"dsd-operator.io/deployment={NAME}")
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def serve(self) -> list[StandIn]:
        """Play the kubelet: every new pod becomes ready, one that is no worker gets an engine, after its workers.

        Returns the engines of the pods there.
        """
        pods = self.pods()
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid in self.names or not self._joined(pod, pods) or self.config_file() is None:
                continue
            self.names[uid] = pod["metadata"]["name"]
            if is_worker(pod):
                self.set_pod(pod, WORKERS)
            else:
                self.served[uid] = self.engine(pod)
        return [self.served[pod["metadata"]["uid"]] for pod in pods if pod["metadata"]["uid"] in self.served]

    def _joined(self, pod: Json, pods: list[Json]) -> bool:
        """Whether its workers run: the controller of groups relies on leaders that are ready with them only."""
        name = pod["metadata"]["name"]
        mine = [p for p in pods if is_worker(p) and groups.leader_of(p) == name and p["metadata"]["uid"] in self.names]
        return is_worker(pod) or len(mine) >= groups.size_of(pod) - 1

    def settled(self, schedule: Triples, replicas: int) -> bool:
        """Whether everything is as the resource says, and the status says so."""
        engines = self.serve()
        ready, applied = self.condition("Ready"), self.condition("ScheduleApplied")
        return (
            (ready.get("status"), applied.get("status")) == ("True", "True")
            and self.status().get("readyReplicas") == replicas
            and [engine.triples() for engine in engines] == [schedule] * replicas
            and self.stored_triples() == schedule
        )

    def wait_settled(self, schedule: Triples, replicas: int, seconds: float = SECONDS) -> None:
        """Wait for that."""
        self._wait("everything to be as asked", lambda: self.settled(schedule, replicas), True, seconds)

    def wait_engines(self, schedule: Triples, seconds: float = SECONDS) -> None:
        """Wait until every engine uses a schedule."""

        def used() -> list[Triples]:
            return [engine.triples() for engine in self.serve()]

        wait_for(f"engines with {schedule}", used, lambda t: bool(t) and t == [schedule] * len(t), seconds, 0.05)

    def final(self) -> Mapping[str, Any]:
        """What is left in the end, comparable between namespaces."""
        self.serve()
        return final_state.of(self)

    def wait_final(self, wanted: Mapping[str, Any], seconds: float = SECONDS) -> None:
        """Wait until what is there equals the end of an undisturbed run; says where it differs."""
        wait_for(
            "the end of an undisturbed run",
            lambda: final_state.differences(wanted, self.final()),
            lambda different: not different,
            seconds,
            0.1,
        )

    def quiet(self) -> Mapping[str, Any]:
        """Wait until the state stays the same for a number of looks; returns it."""
        seen: list[Mapping[str, Any]] = []

        def still() -> int:
            now = self.final()
            seen[:] = [*seen, now] if seen and seen[-1] == now else [now]
            return len(seen)

        wait_for("nothing to change any more", still, lambda looks: looks >= 6, SECONDS, 0.15)
        return seen[-1]

    def prepare(self, spec: Mapping[str, Any] | None) -> tuple[int, list[str]]:
        """Bring a resource into use, if there is to be one: the number of requests so far, and the pods' uids."""
        if spec is not None:
            self.create(FIRST, **spec)
            self.wait_settled(FIRST, int(spec["replicas"]))
            self.quiet()
        return len(self.proxy.calls), self.uids()

    def uids(self) -> list[str]:
        """Of the pods that are there."""
        return sorted(pod["metadata"]["uid"] for pod in self.pods())

    def trail(self, since: int = 0) -> trail.Trail:
        """What the operators' writes did, from the `since`-th request on."""
        return trail.of(self.proxy.calls[since:])

    @staticmethod
    def _wait(what: str, look: Any, wanted: object, seconds: float) -> None:
        wait_for(what, look, lambda found: found == wanted, seconds, 0.05)


def _owner(thing: Json) -> str:
    """The kind of its first owner."""
    owners = thing["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("kind", ""))
