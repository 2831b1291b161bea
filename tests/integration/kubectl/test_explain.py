"""`kubectl dsd explain`: each cause is named with what to do, on what a real API server holds.

No node runs here, so what a kubelet would write is written by the tests; quotas, events and admission are real. The
end-to-end tests do the same with real engines that fail.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsd_operator.api import parse
from dsd_operator.render.labels import labels as render_labels
from dsd_operator.render.names import names_for
from dsd_operator.render.pod_disruption_budget import pod_disruption_budget
from kubectl_dsd.cluster import Cluster
from tests.integration.engine_stand_in import StandIn
from tests.integration.kubectl.tool import Dsd
from tests.integration.pod_addresses import pod_address
from tests.integration.world import World
from tools.cluster.api import ApiOnlyCluster
from tools.testbed.kube import Json, Kube
from tools.testbed.login import log_in
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

_numbers = itertools.count(1)
CRASH = {"exitCode": 1, "reason": "Error"}


class Scene:
    """A deployment whose operator, Deployment and pods are what a test says."""

    def __init__(self, world: World, dsd: Dsd) -> None:
        self.world = world
        self.dsd = dsd
        self.name = f"case{next(_numbers)}"
        self.resource = world.create(name=self.name)

    def status(self, reason: str = "Starting", message: str = "on its way", **more: Any) -> None:
        """Say as the operator would that it has seen the spec and is not Ready for this reason."""
        generation = self.resource["metadata"]["generation"]
        ready = "True" if reason == "Ready" else "False"
        condition = {
            "type": "Ready", "status": ready, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
        }  # fmt: skip
        body = {"observedGeneration": generation, "conditions": [condition], **more}
        self._patch("dsd", self.name, {"status": body})

    def pod(self, name: str = "pod", spec: Json | None = None, **status: Any) -> str:
        """A pod of the deployment with this status."""
        full = f"{self.name}-{name}"
        container = {"name": "engine", "image": "registry.example/vllm:9", **(spec or {})}
        labels = render_labels(names_for(self.name))
        meta = {"name": full, "namespace": self.world.namespace, "labels": labels}
        self.world.kube.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
        )
        self._patch("pod", full, {"status": {"phase": "Pending", **status}})
        return full

    def engine_pod(self, **container: Any) -> str:
        """A pod whose engine is in this state."""
        state = {"name": "engine", "image": "i", "imageID": "i", "ready": False, "restartCount": 0, **container}
        return self.pod(phase="Running", containerStatuses=[state])

    def ready_pod(self, address: str, **status: Any) -> str:
        """A pod that serves at this address."""
        conditions = [{"type": "Ready", "status": "True"}]
        return self.pod(phase="Running", podIP=address, podIPs=[{"ip": address}], conditions=conditions, **status)

    def explain(self) -> Json:
        """What the command says."""
        found: Json = self.dsd.json("explain", self.name)
        return found

    def worst(self) -> Json:
        """The finding that is told first, which must be an error."""
        first: Json = self.explain()["findings"][0]
        assert first["weight"] == "error", first
        return first

    def _patch(self, kind: str, name: str, body: Json) -> None:
        self.world.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps(body))


@pytest.fixture(scope="module")
def place(
    kube: Kube, cluster: ApiOnlyCluster, operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One namespace for all of these tests; no operator runs."""
    with World(kube, cluster.kubeconfig, operator_kubeconfig, "explain", tmp_path_factory.mktemp("explain")) as world:
        yield world


@pytest.fixture
def scene(place: World, cluster: ApiOnlyCluster) -> Scene:
    """A deployment of its own."""
    return Scene(place, Dsd(cluster.kubeconfig, place.namespace))


def waiting(reason: str, message: str) -> Json:
    """A container that waits."""
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def crashed(message: str, **more: Any) -> Json:
    """A container that ended and waits for the next try."""
    ended = {"terminated": {**CRASH, "message": message, **more}}
    return {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended, "restartCount": 4}


GATED = "OSError: You are trying to access a gated repo.\\nMake sure to have access to it at https://hub.example/m"
MISSING = "RepositoryNotFoundError: 404 Client Error. Repository Not Found for url: https://hub.example/acme/tiny"
MEMORY = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
NO_GPU = "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`"
CASES = [
    (
        waiting("ImagePullBackOff", 'Back-off: "r/x:9": not found'),
        "ImagePullBackOff",
        "no such image",
        "spec.engine.image",
    ),
    (waiting("ErrImagePull", "401 Unauthorized"), "ImagePullBackOff", "private", "imagePullSecrets"),
    (waiting("ErrImagePull", "dial tcp: lookup r: no such host"), "ImagePullBackOff", "cannot reach", "network"),
    (
        waiting("CreateContainerConfigError", 'secret "hf" not found'),
        "ContainerConfigError",
        "secret hf",
        "kubectl create",
    ),
    (waiting("RunContainerError", "exec: no such file"), "ContainerStartError", "cannot be created", "podTemplate"),
    (crashed(GATED), "ModelAccessDenied", "gated", "spec.model.tokenSecretRef"),
    (crashed(f"{MISSING} Invalid user token."), "ModelAccessDenied", "not accept the token", "tokenSecretRef"),
    (crashed(MISSING), "ModelNotFound", "no such model", "spec.model.name"),
    (crashed(MEMORY), "EngineOutOfMemory", "memory", "spec.engine.maxModelLen"),
    (crashed(NO_GPU), "DeviceNotFound", "no GPU", "nvidia.com/gpu"),
    (crashed("vllm: error: unrecognized arguments: --sed=1"), "EngineArgumentInvalid", "argument", "extraArgs"),
    (crashed("OSError: [Errno 28] No space left on device"), "StorageFull", "disk is full", "Raise spec.cache.size"),
    (
        crashed("PermissionError: [Errno 13] Permission denied: '/cache/huggingface'"),
        "StorageAccessDenied",
        "may not be read or written",
        "spec.cache.fsGroup",
    ),
    (
        crashed("Cannot reach https://hub.example/x: OfflineModeIsEnabled"),
        "ModelHubUnreachable",
        "not in its cache",
        "spec.cache.offline",
    ),
    (crashed("ValueError: something new"), "CrashLoopBackOff", "ends again and again, 4 times", "kubectl logs"),
    (crashed("", reason="OOMKilled", exitCode=137), "OOMKilled", "memory limit of 2Gi", "limits.memory"),
]


@pytest.mark.parametrize(("state", "reason", "cause", "fix"), CASES)
def test_what_a_container_dies_of(scene: Scene, state: Json, reason: str, cause: str, fix: str) -> None:
    scene.status()
    state = {"name": "engine", "image": "i", "imageID": "i", "ready": False, "restartCount": 0, **state}
    pod = scene.pod(spec={"resources": {"limits": {"memory": "2Gi"}}}, phase="Running", containerStatuses=[state])
    found = scene.worst()
    assert found["reason"] == reason
    assert cause in found["cause"]
    assert fix in found["fix"]
    assert found["objects"] == [f"Pod {pod}"]
    assert found["said"], "the words of who noticed"


def unschedulable(message: str) -> Json:
    """A pod that the scheduler has no node for."""
    return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]}


@pytest.mark.parametrize(
    ("message", "cause", "fix"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "no node offers nvidia.com/gpu at all", "plugin"),
        (
            "0/2 nodes are available: 2 Insufficient memory.",
            "not enough memory free (900Gi of memory asked for)",
            "spec.resources",
        ),
        ("0/1 nodes: 1 node(s) had untolerated taint {gpu: true}.", "taints", "podTemplate.spec.tolerations"),
        ("0/1 nodes: 1 node(s) didn't match Pod's node affinity/selector.", "node selector", "nodeSelector"),
        ('persistentvolumeclaim "models" not found.', "volume claim", "kubectl get pvc"),
    ],
)
def test_no_node_has_room(scene: Scene, message: str, cause: str, fix: str) -> None:
    scene.status()
    limits = {"memory": "900Gi", "nvidia.com/gpu": "1"}
    scene.pod(spec={"resources": {"limits": limits, "requests": limits}}, **unschedulable(message))
    found = scene.worst()
    assert (found["reason"], found["said"]) == ("Unschedulable", [message])
    assert cause in found["cause"]
    assert fix in found["fix"]


def deployment(scene: Scene, **spec: Any) -> Json:
    """A Deployment such as the operator makes."""
    labels = {"app.kubernetes.io/name": "dsd-engine", "dsd-operator.io/deployment": scene.name}
    container = {"name": "engine", "image": "i", "resources": {"requests": {"cpu": "7"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    meta = {"name": scene.name, "namespace": scene.world.namespace}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return scene.world.kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body})


def test_a_quota_leaves_no_room(scene: Scene) -> None:
    """A real quota, refused by the real API server, in the real controller's words."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"requests.cpu": "3"}},
    }
    scene.world.apply(quota)
    try:
        scene.status("PodCreationFailed", "pods cannot be created")
        deployment(scene)
        wait_for("the quota to refuse", scene.explain, lambda e: e["findings"][0]["weight"] == "error", 20)
        found = wait_for(
            "the controller to say so",
            scene.worst,
            lambda f: f["reason"] == "PodCreationFailed" and bool(f["objects"]),
            20,
        )
        assert found["objects"] == ["ResourceQuota small"]
        assert "a pod asks for requests.cpu=7" in found["cause"]
        assert "kubectl describe resourcequota small" in found["fix"]
    finally:
        scene.world.kube.delete("Deployment", scene.world.namespace, scene.name)
        scene.world.kubectl("delete", "resourcequota", "small")


def test_a_paused_roll_out(scene: Scene) -> None:
    scene.status("RollingOut")
    deployment(scene, paused=True)
    found = scene.worst()
    assert found["reason"] == "DeploymentPaused"
    assert f"kubectl rollout resume deployment {scene.name}" in found["fix"]


@pytest.mark.parametrize(
    ("reason", "message", "cause", "fix"),
    [
        ("InvalidSpec", "engine.extraArgs[0]: owned by the operator", "cannot use the spec", "fields"),
        ("ApplyFailed", "Deployment x: denied", "API server refuses", "webhooks"),
        ("ForeignObject", "Service demo: belongs to Helm", "Service that belongs to somebody", "delete service demo"),
        ("SomethingNew", "words", "no more is found", "message"),
        ("CacheNotAsAsked", "the claim models does not exist", "claim for weights and compiled code", "message says"),
        ("ApiMissing", "no PodMonitor", "does not have a kind of object", "Install what its message"),
    ],
)  # fmt: skip
def test_what_the_operator_says_counts(scene: Scene, reason: str, message: str, cause: str, fix: str) -> None:
    scene.status(reason, message)
    found = scene.worst()
    assert (found["reason"], found["said"]) == (reason, [message])
    assert cause in found["cause"]
    assert fix in found["fix"]


def test_nothing_wrong(scene: Scene) -> None:
    with pod_address() as address, StandIn(address, lambda: None):
        scene.ready_pod(address)
        scene.status("Ready", "1 of 1 pods serve")
        found = scene.explain()
    assert (found["verdict"], found["ready"], found["findings"], found["unseen"]) == ("nothing wrong", True, [], [])


def test_scaled_to_zero_is_as_asked(scene: Scene) -> None:
    scene.resource = scene.world.kube.patch(
        "DSDDeployment", scene.world.namespace, scene.name, {"spec": {"replicas": 0}}
    )
    scene.status("Ready", "scaled to zero")
    found = scene.explain()
    assert found["verdict"] == "nothing wrong"
    assert [f["reason"] for f in found["findings"]] == ["ScaledToZero"]


def late(pod: str, reason: str) -> Json:
    """status.schedule with a pod that is behind."""
    return {"schedule": {"outOfSync": [{"pod": pod, "reason": reason}], "podsApplied": 0, "podsTotal": 1}}


def test_an_engine_that_refuses(scene: Scene) -> None:
    with pod_address() as address, StandIn(address, lambda: None):
        pod = scene.ready_pod(address)
        scene.status("RefusedByEngine", "K=7 is too much", **late(pod, "RefusedByEngine"))
        found = scene.worst()
    assert found["reason"] == "RefusedByEngine"
    assert "K may be 0, 1, 2, 3 there" in found["fix"]


def test_a_plugin_that_is_off(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    off = {
        "mode": "off",
        "versions": {"runtime": "1", "vllm": "9.9"},
        "lastError": {"message": "vLLM 9.9 is not known"},
    }
    monkeypatch.setattr("kubectl_dsd.cluster.Cluster.engine_document", lambda *_, **__: off)
    pod = scene.ready_pod("198.51.100.1")
    scene.status("RuntimePluginOff", "off", **late(pod, "RuntimePluginOff"))
    found = scene.worst()
    assert "takes a schedule at start only" in found["cause"]
    assert found["said"] == ["vLLM 9.9 is not known"]


def policy(scene: Scene, ingress: list[Json]) -> Json:
    """A NetworkPolicy over the deployment's pods."""
    selector = {"matchLabels": {"dsd-operator.io/deployment": scene.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"{scene.name}-shut"},
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def test_a_policy_that_shuts_the_operator_out_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network enforces the policy here: the engine hangs instead, as a connection whose packets are dropped does."""
    scene.world.apply(policy(scene, [{"from": [{"podSelector": {}}]}]))
    document = Cluster.engine_document

    def hurried(cluster: Cluster, namespace: str, name: str, path: str, _: float) -> Json:
        return document(cluster, namespace, name, path, 0.5)

    monkeypatch.setattr(Cluster, "engine_document", hurried)
    with pod_address() as address, StandIn(address, lambda: None) as engine:
        engine.silent.set()
        pod = scene.ready_pod(address)
        scene.status("Ready", "1 of 1 pods serve", **late(pod, "PodUnreachable"))
        found = scene.explain()
    assert found["verdict"] == "Ready, with something to look at"
    reasons = {f["reason"]: f for f in found["findings"]}
    assert f"blocked by the NetworkPolicy {scene.name}-shut" in reasons["PodUnreachable"]["cause"]
    assert "kubernetes.io/metadata.name=" in reasons["PodUnreachable"]["fix"]
    assert f"blocked by the NetworkPolicy {scene.name}-shut" in reasons["BlockedByPolicy"]["cause"]


def test_a_policy_that_keeps_the_pods_from_the_hub_is_named(scene: Scene) -> None:
    scene.status()
    rules = policy(scene, [])
    scene.world.apply({**rules, "spec": {**rules["spec"], "policyTypes": ["Egress"]}})
    scene.engine_pod(**crashed("OSError: We couldn't connect to 'https://hub.example' to load the files"))
    found = scene.worst()
    assert "cannot reach the model hub" in found["cause"]
    assert f"The NetworkPolicy {scene.name}-shut restricts" in found["fix"]


def test_an_own_budget_beside_ours_is_named_for_nothing_can_be_evicted(scene: Scene) -> None:
    """The refusal is the real API server's, whatever the two allow."""
    world = scene.world
    pod = scene.engine_pod(state={"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    scene.status("Ready", "1 of 1 pods serve")
    world.apply(pod_disruption_budget(parse(scene.resource)))
    own = {"maxUnavailable": 1, "selector": {"matchLabels": {"dsd-operator.io/deployment": scene.name}}}
    meta = {"name": f"{scene.name}-own"}
    world.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": own})
    path = f"/api/v1/namespaces/{world.namespace}/pods/{pod}/eviction"
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})

    with pytest.raises(AssertionError, match="more than one PodDisruptionBudget"):
        world.kubectl("create", "--raw", path, "-f", "-", given=eviction)
    (found,) = (f for f in scene.explain()["findings"] if f["reason"] == "SeveralDisruptionBudgets")
    assert found["objects"] == [f"PodDisruptionBudget {scene.name}", f"PodDisruptionBudget {scene.name}-own"]
    delete = f"kubectl delete pdb {scene.name}-own -n {world.namespace}"
    assert delete in found["fix"]

    world.kubectl(*delete.split()[1:])
    assert "SeveralDisruptionBudgets" not in [f["reason"] for f in scene.explain()["findings"]]
    world.kubectl("create", "--raw", path, "-f", "-", given=eviction)


@pytest.fixture
def operator(place: World) -> Iterator[Callable[..., None]]:
    """A Deployment that looks like the operator's own; gone after the test."""

    def make(replicas: int, available: int, watch: str = "") -> None:
        labels = {"app.kubernetes.io/name": "dsd-operator"}
        env = [{"name": "DSD_OPERATOR_WATCH_NAMESPACES", "value": watch}]
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "operator", "image": "i", "env": env}]},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "dsd-operator", "namespace": "dsd-system", "labels": labels}
        place.kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        body = json.dumps(
            {"status": {"replicas": replicas, "availableReplicas": available, "readyReplicas": available}}
        )
        place.kubectl(
            "-n",
            "dsd-system",
            "patch",
            "deployment",
            "dsd-operator",
            "--subresource=status",
            "--type=merge",
            "-p",
            body,
        )

    yield make
    place.kube.delete("Deployment", "dsd-system", "dsd-operator")


def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spec has not changed for a while."""
    monkeypatch.setattr("kubectl_dsd.explain.facts.Facts.changed_seconds_ago", lambda _: 60.0)


def test_nobody_works_on_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scene.explain()["findings"][0]["reason"] == "JustChanged", "it is a moment old"
    old(monkeypatch)
    assert scene.worst()["reason"] == "OperatorNotInstalled"


def test_the_operator_does_not_run(
    scene: Scene, operator: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    old(monkeypatch)
    operator(0, 0)
    found = scene.worst()
    assert found["reason"] == "OperatorNotRunning"
    assert "--replicas=1" in found["fix"]
    scene.status("Ready", "1 of 1 pods serve")
    assert scene.explain()["findings"][0]["weight"] == "warning", "engines go on"


def test_the_operator_does_not_watch_here(
    scene: Scene, operator: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    old(monkeypatch)
    operator(0, 0, "elsewhere")
    assert scene.worst()["reason"] == "NamespaceNotWatched"


def test_a_pod_that_came_back_is_a_warning(scene: Scene) -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    state = {"name": "engine", "image": "i", "imageID": "i", "ready": True, "restartCount": 2, "lastState": last}
    with pod_address() as address, StandIn(address, lambda: None):
        scene.ready_pod(address, containerStatuses=[{**state, "state": {"running": {}}}])
        scene.status("Ready", "1 of 1 pods serve")
        found = scene.dsd.json("explain", scene.name, "--exit-code", code=3)
    assert [f["reason"] for f in found["findings"]] == ["Restarted"]
    assert "memory limit" in found["findings"][0]["cause"]


def test_what_may_not_be_read_is_named(scene: Scene, place: World, tmp_path: Path, cluster: ApiOnlyCluster) -> None:
    """A person with the right to read deployments alone."""
    rules = [{"apiGroups": ["dsd-operator.io"], "resources": ["dsddeployments"], "verbs": ["get", "list"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": rules,
    }
    place.apply(role)
    place.kubectl("create", "serviceaccount", "person")
    place.kubectl("create", "rolebinding", "person", "--role=reader", f"--serviceaccount={place.namespace}:person")
    login = log_in(cluster.kubeconfig, place.namespace, "person", tmp_path / "config")
    scene.status("InvalidSpec", "engine.extraArgs[0]: no")
    person = Dsd(login, place.namespace)
    found = person.json("explain", scene.name)
    assert found["findings"][0]["reason"] == "InvalidSpec"
    assert any("you may not list pods" in text for text in found["unseen"])
    assert "you may not list pods" in person("status", scene.name, code=1).stderr
