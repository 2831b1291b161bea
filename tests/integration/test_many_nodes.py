"""Engines over several nodes: a LeaderWorkerSet with its real controller in place of the Deployment.

Its controller makes StatefulSets of it, Kubernetes' own controllers pods of those; kubelets are played, and a stand-in
answers for each leader.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_operator.render.names import names_for
from tests.docs.blocks import blocks
from tests.docs.session import Session
from tests.integration.engine_stand_in import StandIn
from tests.integration.kubectl.tool import Dsd
from tests.integration.world import FIRST, NAME, SECOND, World, ranges
from tools.cluster.api import ApiOnlyCluster
from tools.cluster.paths import REPOSITORY
from tools.leader_worker_set import controller
from tools.testbed.kube import Json
from tools.testbed.module_crds import LEADER_WORKER_SET
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

GROUP: Final = names_for(NAME).group
TWO_NODES: Final = {"nodes": 2, "tensorParallelSize": 2}
SECONDS: Final = 60.0
LEADERS: Final = f"app.kubernetes.io/name=dsd-engine,dsd-operator.io/deployment={NAME}"
LEADER_NAME: Final = "leaderworkerset.sigs.k8s.io/leader-name"
WORKERS: Final = f"app.kubernetes.io/name=dsd-worker,dsd-operator.io/deployment={NAME}"


@pytest.fixture(scope="module")
def controlled(cluster: ApiOnlyCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The controller of LeaderWorkerSets."""
    with controller.running(cluster.kubeconfig, tmp_path_factory.mktemp("controller")):
        yield


class Kubelets:
    """Plays the kubelets of a namespace: every pod that comes runs and is ready, and each leader answers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.engines: dict[str, StandIn] = {}
        """By the leader's uid."""
        self._seen: set[str] = set()

    def pods(self, selector: str) -> list[Json]:
        """Pods by their labels, in the order of their names."""
        found = self.world.kube.list("Pod", self.world.namespace, selector)
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def leaders(self) -> list[StandIn]:
        """The stand-ins of the leaders that are there."""
        return [self.engines[pod["metadata"]["uid"]] for pod in self.pods(LEADERS)]

    def work(self) -> None:
        """Take care of the pods that are new."""
        pods = [p for p in self.pods(f"dsd-operator.io/deployment={NAME}") if "deletionTimestamp" not in p["metadata"]]
        for pod in pods:
            uid, is_leader = pod["metadata"]["uid"], pod["metadata"]["labels"]["app.kubernetes.io/name"] == "dsd-engine"
            if uid in self._seen or (is_leader and not self._is_joined(pod, pods)):
                continue
            if is_leader:
                self.engines[uid] = self.world.engine(pod)
            else:
                self.world.set_pod(pod, "127.0.88.1")
            self._seen.add(uid)

    def _is_joined(self, leader: Json, pods: list[Json]) -> bool:
        """Whether its workers run: an engine answers with all of them only, and their controller relies on that."""
        size = int(_annotations(leader).get("leaderworkerset.sigs.k8s.io/size", 1))
        mine = [p for p in pods if _annotations(p).get(LEADER_NAME) == leader["metadata"]["name"]]
        return sum(pod["metadata"]["uid"] in self._seen for pod in mine) == size - 1

    def until(self, what: str, done: Callable[[], Any]) -> Any:
        """Go on until `done` is true; returns what it returned."""

        def step() -> Any:
            self.work()
            return done()

        return wait_for(what, step, bool, SECONDS, 0.1)

    def until_ready(self, replicas: int) -> None:
        """Go on until the resource is ready with so many engines."""
        self.until(f"{replicas} engines to be ready", lambda: _is_ready(self.world, replicas))


def _uid(pod: Json) -> str:
    return str(pod["metadata"]["uid"])


def _annotations(pod: Json) -> Json:
    found: Json = pod["metadata"].get("annotations") or {}
    return found


def _is_ready(world: World, replicas: int) -> bool:
    return world.condition("Ready").get("status") == "True" and world.status().get("ready") == f"{replicas}/{replicas}"


def _group(world: World) -> Json | None:
    return world.kube.get("LeaderWorkerSet", world.namespace, GROUP)


def _served(world: World) -> set[str]:
    """Names of the pods that the Service selects. There are no EndpointSlices: they hold no address of a loopback."""
    selector = ",".join(f"{key}={value}" for key, value in world.wait_child("Service")["spec"]["selector"].items())
    return {pod["metadata"]["name"] for pod in world.kube.list("Pod", world.namespace, selector)}


def test_without_the_kind_it_says_so_and_heals(world: World, cluster: ApiOnlyCluster) -> None:
    LEADER_WORKER_SET.remove(cluster.kubeconfig)
    world.operator()
    world.create(engine=TWO_NODES)
    ready = world.wait_condition("Ready", status="False", reason="ApiMissing")
    assert "LeaderWorkerSet" in ready["message"]
    assert "install LeaderWorkerSet" in ready["message"]
    assert "set spec.engine.nodes to 1" in ready["message"]
    world.wait_condition("Available", status="False", reason="ApiMissing")
    world.wait_condition("Progressing", status="False", reason="ApiMissing")
    world.wait_event("ApiMissing")
    world.wait_child("ConfigMap")
    world.wait_child("Service")
    assert world.child("Deployment") is None

    LEADER_WORKER_SET.install(cluster.kubeconfig)
    made = wait_for("the LeaderWorkerSet", lambda: _group(world), lambda g: g is not None, SECONDS, 0.1)
    assert made is not None
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("DSDDeployment", world.resource()["metadata"]["uid"])
    world.wait_condition("Progressing", status="True")


@pytest.mark.usefixtures("controlled")
def test_leaders_answer_and_take_the_schedule(world: World) -> None:
    operator = world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES, replicas=2)
    kubelets.until_ready(2)
    leaders = {pod["metadata"]["name"] for pod in kubelets.pods(LEADERS)}
    workers = kubelets.pods(WORKERS)
    assert leaders == {f"{GROUP}-0", f"{GROUP}-1"}
    assert {pod["metadata"]["name"] for pod in workers} == {f"{GROUP}-0-1", f"{GROUP}-1-1"}
    assert _served(world) == leaders
    assert world.status()["selector"] == LEADERS
    assert world.status()["replicas"] == 2
    world.wait_schedule(2, 2)

    before = {pod["metadata"]["uid"] for pod in (*kubelets.pods(LEADERS), *workers)}
    world.schedule(SECOND)
    world.wait_schedule(2, 2)
    assert [engine.triples() for engine in kubelets.leaders()] == [SECOND, SECOND]
    assert {pod["metadata"]["uid"] for pod in (*kubelets.pods(LEADERS), *kubelets.pods(WORKERS))} == before

    writes = operator.writes()
    world.patch(podTemplate={"metadata": {}})  # a pass that finds nothing to do
    wait_for("the pass", lambda: world.status().get("observedGeneration"), lambda g: g == _generation(world), SECONDS)
    assert operator.writes() - writes <= 1, "the status and nothing else"


@pytest.mark.usefixtures("controlled")
def test_what_the_engine_is_started_with(world: World) -> None:
    """The controller fills in what our arguments refer to."""
    world.operator()
    world.create(engine=TWO_NODES)
    kubelets = Kubelets(world)
    kubelets.until_ready(1)
    (leader,), (worker,) = kubelets.pods(LEADERS), kubelets.pods(WORKERS)
    address = f"{GROUP}-0.{GROUP}.{world.namespace}"
    assert _started(leader)[-6:] == ["--nnodes", "2", "--node-rank", "0", "--master-addr", address]
    assert _started(worker)[-7:] == ["--nnodes", "2", "--node-rank", "1", "--master-addr", address, "--headless"]
    (container,) = worker["spec"]["containers"]
    assert not {"startupProbe", "readinessProbe", "livenessProbe"} & container.keys()
    assert worker["spec"]["subdomain"] == GROUP
    service = world.kube.get("Service", world.namespace, GROUP)
    assert service is not None, "the leader's address is a name in this Service"
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)


def _started(pod: Json) -> list[str]:
    """The engine's arguments as the kubelet fills them in."""
    (container,) = pod["spec"]["containers"]
    values = {f"$({v['name']})": v["value"] for v in container["env"] if "value" in v}
    return [values.get(argument, argument) for argument in container["args"]]


@pytest.mark.usefixtures("controlled")
def test_a_changed_envelope_rolls_one_group_after_the_other(world: World) -> None:
    world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES, replicas=2)
    kubelets.until_ready(2)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in kubelets.pods(LEADERS)}
    told: list[int] = []

    def rolled() -> bool:
        told.append(int(world.status().get("readyReplicas", 0)))
        now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in kubelets.pods(LEADERS)}
        changed = all(now.get(name) not in (None, uid) for name, uid in before.items())
        return changed and _is_ready(world, 2)

    world.patch(engine={"maxNumSeqs": 32})
    world.wait_condition("Progressing", status="True", reason="RollingOut")
    kubelets.until("both groups to be new", rolled)
    assert min(told) >= 1, "one of them serves at any time"
    assert world.status()["updatedReplicas"] == 2
    for pod in (*kubelets.pods(LEADERS), *kubelets.pods(WORKERS)):
        assert "--max-num-seqs" in pod["spec"]["containers"][0]["args"]


@pytest.mark.long
@pytest.mark.usefixtures("controlled")
def test_a_worker_that_restarts_brings_its_whole_group_anew(world: World) -> None:
    """None of them can go on without the others, so the controller is told to make all of them anew."""
    world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES, replicas=2)
    kubelets.until_ready(2)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in _all(kubelets)}
    worker = kubelets.pods(WORKERS)[1]
    status = {"name": "engine", "ready": True, "restartCount": 1, "image": "i", "imageID": "i", "state": {}}
    world.set_pod(worker, "127.0.88.1", containerStatuses=[status])

    def renewed() -> bool:
        now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in _all(kubelets)}
        return now.keys() == before.keys() and {n for n, uid in now.items() if uid != before[n]} == {
            f"{GROUP}-1", f"{GROUP}-1-1",
        }  # fmt: skip

    kubelets.until("the group to be new, and the other one to be left", renewed)
    kubelets.until_ready(2)


@pytest.mark.long
@pytest.mark.usefixtures("controlled")
def test_a_change_that_mends_is_on_its_way_though_the_group_before_it_crashed(world: World) -> None:
    """What ended it is remembered for the group that is made anew, and not for one that is made otherwise."""
    operator = world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES)

    def leader(other_than: str = "") -> Json:
        """The leader, once its group is there."""

        def there(pods: list[Json]) -> bool:
            return bool(pods) and _uid(pods[0]) != other_than

        return wait_for("a leader", lambda: kubelets.pods(LEADERS), there, SECONDS)[0]

    broken = leader()
    ended = {"exitCode": 2, "reason": "Error", "message": "main.py: error: unrecognized arguments: --no-such-option"}
    status = {"name": "engine", "ready": False, "restartCount": 1, "image": "i", "imageID": "i",
              "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}  # fmt: skip
    world.set_pod(broken, "127.0.88.2", ready=False, containerStatuses=[status])
    anew = leader(other_than=_uid(broken))
    world.wait_condition("Ready", status="False", reason="EngineArgumentInvalid")
    failed = world.wait_condition("Progressing", status="False", reason="EngineArgumentInvalid")
    operator.kill()
    operator.start()
    world.schedule(SECOND)
    wait_for("a pass", lambda: world.condition("Progressing"), bool, SECONDS, 0.1)
    assert world.condition("Progressing")["lastTransitionTime"] == failed["lastTransitionTime"], "the status remembers"

    world.patch(engine={**TWO_NODES, "maxNumSeqs": 8})
    world.wait_condition("Progressing", status="True")
    leader(other_than=_uid(anew))
    world.wait_condition("Progressing", status="True", reason="Pending")
    world.wait_condition("Ready", status="False", reason="Pending")
    kubelets.until_ready(1)


@pytest.mark.usefixtures("controlled")
def test_an_engine_without_one_of_its_workers_does_not_count(world: World, cluster: ApiOnlyCluster) -> None:
    world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES)
    kubelets.until_ready(1)
    (worker,) = kubelets.pods(WORKERS)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    status = {"name": "engine", "ready": False, "restartCount": 0, "image": "i", "imageID": "", "state": waiting}
    world.set_pod(worker, "127.0.88.1", ready=False, phase="Pending", containerStatuses=[status])
    ready = world.wait_condition("Ready", status="False", reason="ImagePullBackOff")
    assert worker["metadata"]["name"] in ready["message"]
    assert world.status()["ready"] == "0/1"
    first = Dsd(cluster.kubeconfig, world.namespace).json("explain", NAME)["findings"][0]
    assert (first["reason"], first["objects"]) == ("ImagePullBackOff", [f"Pod {worker['metadata']['name']}"])


@pytest.mark.long
@pytest.mark.usefixtures("controlled")
def test_it_scales_by_whole_engines_and_to_zero(world: World) -> None:
    world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES)
    kubelets.until_ready(1)
    world.kubectl("scale", "dsd", NAME, "--replicas=3")
    kubelets.until_ready(3)
    assert len(_all(kubelets)) == 6
    scale = json.loads(world.kubectl("get", "dsd", NAME, "--subresource=scale", "-o", "json"))
    assert (scale["status"]["replicas"], scale["status"]["selector"]) == (3, LEADERS)

    world.kubectl("scale", "dsd", NAME, "--replicas=0")
    kubelets.until("all pods to go", lambda: not _all(kubelets))
    wait_for("it to say so", lambda: world.condition("Ready"), lambda c: c.get("reason") == "ScaledToZero", SECONDS)
    world.schedule(SECOND)
    world.kubectl("scale", "dsd", NAME, "--replicas=1")
    kubelets.until_ready(1)
    assert kubelets.leaders()[0].triples() == SECOND


def _all(kubelets: Kubelets) -> list[Json]:
    return [*kubelets.pods(LEADERS), *kubelets.pods(WORKERS)]


def _generation(world: World) -> int:
    return int(world.resource()["metadata"]["generation"])


@pytest.mark.usefixtures("controlled")
@pytest.mark.parametrize("surge", [0, pytest.param(1, marks=pytest.mark.long)])
def test_engines_move_to_several_nodes_and_back(world: World, surge: int) -> None:
    """No more pods than a roll-out may have, no fewer that serve; what is left behind goes last of all."""
    world.operator()
    kubelets = Kubelets(world)
    rollout = {"maxSurge": surge, "maxUnavailable": 1 - surge}
    world.create(replicas=2, rollout=rollout, networkPolicy={"enabled": True})
    kubelets.until_ready(2)
    served: list[int] = []
    present: list[int] = []

    def moved_from(other: str) -> bool:
        served.append(int(world.status().get("readyReplicas", 0)))
        present.append(len([pod for pod in kubelets.pods(LEADERS) if "deletionTimestamp" not in pod["metadata"]]))
        if other == "LeaderWorkerSet":
            free = _reach_each_other(world)
            assert free or not kubelets.pods(WORKERS), "a group that is left serves on, to its last pod"
        gone = world.kube.get(other, world.namespace, GROUP if other == "LeaderWorkerSet" else NAME) is None
        return gone and _is_ready(world, 2)

    world.patch(engine=TWO_NODES)
    kubelets.until("the engines to be groups", lambda: moved_from("Deployment"))
    assert len(kubelets.pods(WORKERS)) == 2
    world.patch(engine={"nodes": 1, "tensorParallelSize": None}, schedule=ranges(SECOND))
    kubelets.until("the engines to be single pods again", lambda: moved_from("LeaderWorkerSet"))
    world.wait_schedule(2, 2)
    assert min(served) >= 2 - rollout["maxUnavailable"]
    assert max(present) <= 2 + surge
    assert kubelets.pods(WORKERS) == []
    wait_for("the policy to be that of single pods", lambda: _reach_each_other(world), lambda free: not free, SECONDS)


def _reach_each_other(world: World) -> bool:
    """Whether the NetworkPolicy lets the pods of the resource talk to each other on every port."""
    ingress = world.wait_child("NetworkPolicy")["spec"]["ingress"]
    return any("ports" not in rule for rule in ingress)


def test_somebody_elses_is_left_alone(world: World, cluster: ApiOnlyCluster) -> None:
    LEADER_WORKER_SET.install(cluster.kubeconfig)
    world.operator()
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"startupPolicy": "LeaderCreated", "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    meta = {"name": GROUP, "namespace": world.namespace}
    world.apply({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta,
                 "spec": {**spec, "rolloutStrategy": {"type": "RollingUpdate"}}})  # fmt: skip
    world.create(engine=TWO_NODES)
    ready = world.wait_condition("Ready", status="False", reason="ForeignObject")
    assert f"LeaderWorkerSet {GROUP}" in ready["message"]
    found = _group(world)
    assert found is not None
    assert "ownerReferences" not in found["metadata"]


@pytest.mark.usefixtures("controlled")
@pytest.mark.parametrize(("allowed", "short"), [(1, f"{GROUP}-0"), pytest.param(0, GROUP, marks=pytest.mark.long)])
def test_pods_that_a_quota_refuses(world: World, cluster: ApiOnlyCluster, allowed: int, short: str) -> None:
    """The words of the refusal are in Events of a StatefulSet, which are not the operator's to read."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    world.apply({**quota, "spec": {"hard": {"pods": str(allowed)}}})
    operator = world.operator()
    world.create(engine=TWO_NODES)
    command = f"describe statefulset {short}"
    told = f"pods cannot be created: StatefulSet {short} has 0 of 1; `kubectl {command}` says why"
    wait_for("it to be told", lambda: world.condition("Ready").get("message"), lambda m: m == told, SECONDS, 0.1)
    assert world.condition("Ready")["reason"] == "PodCreationFailed"
    moving = world.wait_condition("Progressing", status="False", reason="PodCreationFailed")
    assert moving["message"].endswith(told)
    assert "exceeded quota: few" in world.kubectl(*command.split())
    first = Dsd(cluster.kubeconfig, world.namespace).json("explain", NAME)["findings"][0]
    assert (first["reason"], first["objects"]) == ("PodCreationFailed", ["ResourceQuota few"])
    assert "exceeded quota: few" in first["said"][0]
    operator.kill()
    operator.start()
    world.schedule(SECOND)
    wait_for("a pass", lambda: world.condition("Progressing"), bool, SECONDS, 0.1)
    assert world.condition("Progressing")["lastTransitionTime"] == moving["lastTransitionTime"]

    world.kubectl("delete", "resourcequota", "few")
    world.kubectl("annotate", "statefulset", short, "again=now")  # its controller tries by itself, at growing intervals
    Kubelets(world).until_ready(1)


@pytest.mark.usefixtures("controlled")
def test_engines_that_do_not_get_ready_in_time(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but the operator minds that. It reads the beginning off the status, so another one goes on counting."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    monkeypatch.setenv("MOVED_CLOCK", str(clock))
    operator = world.idle_operator()
    operator.module = "tests.integration.moved_clock"
    operator.start()
    world.create(engine=TWO_NODES, startup={"timeoutSeconds": 600})
    kubelets = Kubelets(world)
    begun = world.wait_condition("Progressing", status="True", reason="Pending")
    operator.kill()
    clock.write_text(str(600 + 600 - 60))
    operator.start()
    world.schedule(SECOND)
    wait_for("a pass", lambda: world.condition("Progressing"), bool, SECONDS, 0.1)
    assert world.condition("Progressing")["lastTransitionTime"] == begun["lastTransitionTime"]

    operator.kill()
    clock.write_text("7200")
    operator.start()
    late = world.wait_condition("Progressing", status="False", reason="ProgressDeadlineExceeded")
    assert "waits for a node" in late["message"]
    world.wait_condition("Ready", status="False", reason="ProgressDeadlineExceeded")
    world.wait_event("ProgressDeadlineExceeded")

    operator.kill()
    operator.start()
    world.schedule(FIRST)
    wait_for("a pass", lambda: world.condition("Progressing"), bool, SECONDS, 0.1)
    assert world.condition("Progressing")["lastTransitionTime"] == late["lastTransitionTime"]
    kubelets.until_ready(1)
    world.wait_condition("Progressing", status="False", reason="RolledOut")


@pytest.mark.usefixtures("controlled")
def test_all_of_it_goes_with_the_resource(world: World) -> None:
    operator = world.operator()
    kubelets = Kubelets(world)
    world.create(engine=TWO_NODES)
    kubelets.until_ready(1)
    operator.terminate()  # owner references delete, not we
    world.kube.delete("DSDDeployment", world.namespace, NAME)

    def left() -> list[str]:
        kinds = ("LeaderWorkerSet", "StatefulSet", "Pod", "ConfigMap", "Service")
        found = [o["metadata"]["name"] for kind in kinds for o in world.kube.list(kind, world.namespace)]
        return [name for name in found if name.startswith(NAME)]

    wait_for("everything to go", left, lambda names: not names, SECONDS, 0.1)


@pytest.mark.usefixtures("controlled")
def test_the_page(world: World, tmp_path: Path) -> None:
    """The commands of docs/how-to/many-nodes.md, on its sample under the name that this file's engines have."""
    world.operator()
    page = REPOSITORY / "docs" / "how-to" / "many-nodes.md"
    sample = "samples/llama-3.1-405b-two-nodes.yaml"
    (folder := tmp_path / "shell").mkdir()
    text = (REPOSITORY / sample).read_text().replace("llama-405b", NAME)
    (folder / "demo.yaml").write_text(text.replace("Tokens: 4", "Tokens: 3"))  # the stand-in drafts no more
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(world.kubectl("config", "view", "--raw", "--flatten"))
    prelude = f"kubectl config set-context --current --namespace {world.namespace}"
    session = Session(folder, kubeconfig, {sample: "demo.yaml", "llama-405b": NAME}, prelude)
    with _at_work(Kubelets(world)):
        session.run([block for block in blocks(page) if block.level == THIS_FILE or block.comment == "output"])


THIS_FILE: Final = str(Path(__file__).relative_to(Path(__file__).resolve().parents[2]))


@contextmanager
def _at_work(kubelets: Kubelets) -> Iterator[None]:
    """Kubelets that work beside the test."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.2):
            kubelets.work()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
