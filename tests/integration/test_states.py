"""Every state of `dsd_operator.status.states`, brought about on the API server: conditions, messages, Events, health.

The controllers, quotas, gates and Pod Security are real here. What a kubelet or a scheduler would write is written by
the tests, in words that were recorded; tests/e2e/test_states.py has the states that a node makes by itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime.protocol import EngineStatus, Versions
from kubectl_dsd.cluster import Cluster
from tests.integration.engine_stand_in import StandIn
from tests.integration.kubectl.tool import Dsd
from tests.integration.operator_process import OperatorProcess
from tests.integration.world import NAME, SECOND, World
from tests.states import check_events, check_explained, expected_health, health, named, shows, untold, wrong
from tools.cluster.api import ApiOnlyCluster
from tools.testbed.fake_engine import ENVELOPE
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

LONG_AGO: Final = "2020-01-01T00:00:00Z"
ADDRESS: Final = "127.0.76.1"
"""Of pods that nobody answers for."""


@pytest.fixture(scope="module")
def operator(operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One for all namespaces, shared by all states."""
    made = OperatorProcess(operator_kubeconfig, tmp_path_factory.mktemp("states") / "operator.log")
    yield made.start()
    made.close()


@pytest.fixture
def place(world: World, operator: OperatorProcess) -> World:
    """A namespace in which that operator works."""
    world.operators.append(operator)
    return world


def engine(**state: Any) -> Json:
    """The engine's container in a pod's status."""
    return {
        "name": "engine", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "started": False, **state
    }  # fmt: skip


def waiting(reason: str, message: str = "") -> Json:
    """A container that waits."""
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, message: str = "", reason: str = "Error", seconds: int = 5) -> Json:
    """A container that ended, and that the kubelet has yet to start again."""
    last = {"exitCode": code, "reason": reason, "message": message, "startedAt": LONG_AGO}
    last["finishedAt"] = f"2020-01-01T00:00:{seconds:02}Z"
    return {**waiting("CrashLoopBackOff", "back-off 10s"), "lastState": {"terminated": last}, "restartCount": 1}


RUNNING: Final[Json] = {"state": {"running": {"startedAt": LONG_AGO}}}


def bind(world: World, pod: Json) -> None:
    """Put a pod on a node that is not there; the garbage collector leaves it alone for a while."""
    name = pod["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/binding"
    world.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(binding))


def one_pod(**container: Any) -> Callable[[World], None]:
    """A deployment whose only pod is on a node, with its engine in this state."""

    def bring(world: World) -> None:
        world.create(startup={"timeoutSeconds": 30})
        (pod,) = world.wait_pods(1)
        bind(world, pod)
        world.set_pod(pod, ADDRESS, ready=False, containerStatuses=[engine(**container)])

    return bring


def serving(world: World, replicas: int = 2, **spec: Any) -> list[StandIn]:
    """A deployment that has been Ready; its pods count as available at once."""
    world.create(replicas=replicas, **spec)
    made = world.engines(replicas)
    for pod, stand_in in zip(world.wait_pods(replicas), made, strict=True):
        set_ready(world, pod, stand_in.address)
    world.wait_schedule(replicas)
    return made


def set_ready(world: World, pod: Json, address: str) -> None:
    """Since long ago, so that minReadySeconds are over."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
    world.set_pod(pod, address, conditions=[condition])


def settled(world: World) -> None:
    """Wait until the Deployment's own controller calls its roll-out done."""

    def reasons() -> set[str]:
        return {c["reason"] for c in (world.wait_child("Deployment").get("status") or {}).get("conditions") or ()}

    wait_for("the roll-out to be done", reasons, lambda found: "NewReplicaSetAvailable" in found, 20, 0.05)


def fell_back(**container: Any) -> Callable[[World], None]:
    """One of two pods that served does not any more."""

    def bring(world: World) -> None:
        serving(world)
        settled(world)
        pod = world.wait_pods(2)[0]
        bind(world, pod)
        world.set_pod(pod, ADDRESS, ready=False, containerStatuses=[engine(**container)])

    return bring


def updating(world: World) -> None:
    serving(world)
    settled(world)
    world.patch(engine={"maxNumSeqs": 64})


def replacing(**container: Any) -> Callable[[World], None]:
    """A change is rolled out to two pods that serve, and the first of the new ones is in this state."""

    def bring(world: World) -> None:
        updating(world)
        newcomer(world, **container)

    return bring


def newcomer(world: World, **container: Any) -> None:
    """Wait for the pod that has yet to serve, beside one that does, and put its engine in this state."""

    def late() -> list[Json]:
        return [pod for pod in world.wait_pods(2) if "podIP" not in pod["status"]]

    (pod,) = wait_for("the new pod", late, bool, 20, 0.05)
    bind(world, pod)
    world.set_pod(pod, ADDRESS, ready=False, containerStatuses=[engine(**container)])


def one_more(world: World) -> None:
    serving(world, 1)
    settled(world)
    world.patch(replicas=2)
    newcomer(world, **RUNNING)


def replacing_takes_long(world: World) -> None:
    replacing(**RUNNING)(world)
    world.wait_condition("Progressing", reason="RollingOut")
    pass_deadline(world)


def changed_to_nonsense(world: World) -> None:
    serving(world)
    settled(world)
    world.patch(podTemplate=NONSENSE)


def claim_of_another_class(world: World) -> None:
    """The field went and came back: no transition for the API server to judge."""
    world.create(replicas=0, cache={"size": "1Gi", "storageClass": "one"})
    world.wait_child("PersistentVolumeClaim")
    world.patch(cache={"size": None, "storageClass": None})
    world.patch(cache={"size": "1Gi", "storageClass": "another"})
    world.wait_condition("Ready", reason="CacheNotAsAsked")
    world.patch(replicas=1)
    world.engines(1)


def unschedulable(world: World) -> None:
    world.create()
    (pod,) = world.wait_pods(1)
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    world.set_pod(pod, "", phase="Pending", podIP=None, podIPs=None, conditions=[condition])


def overdue(world: World) -> None:
    one_pod(**RUNNING)(world)
    pass_deadline(world)


def pass_deadline(world: World) -> None:
    """The Deployment's controller keeps this until its pods get on."""
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
    times = {"lastUpdateTime": LONG_AGO, "lastTransitionTime": LONG_AGO}
    body = json.dumps({"status": {"conditions": [condition | times]}})
    world.kubectl("patch", "deployment", NAME, "--subresource=status", "--type=merge", "-p", body)


def refused(first: int) -> Callable[[World], None]:
    """The engines from `first` on cannot use the second schedule."""

    def bring(world: World) -> None:
        for stand_in in serving(world)[first:]:
            stand_in.state.envelope = ENVELOPE.model_copy(update={"allowed_tokens": (1, 3)})
        world.schedule(SECOND)

    return bring


def plugin_off(world: World) -> None:
    for stand_in in serving(world):
        off = {"source": "start", "message": "vLLM 0.99.0 is not known to this plugin", "time": LONG_AGO}
        status = EngineStatus.model_validate(
            {"mode": "off", "versions": Versions(runtime="0.1.0", vllm="0.99.0"), "lastError": off}
        )
        stand_in.status = lambda status=status: status  # type: ignore[method-assign,misc]
    world.schedule(SECOND)


def token_refused(world: World) -> None:
    for stand_in in serving(world):
        stand_in.config_file = lambda: None
    world.schedule(SECOND)


def unreachable(world: World) -> None:
    serving(world)[0].silent.set()
    world.schedule(SECOND)


def quota(world: World, **hard: str) -> None:
    """A quota of the namespace."""
    kind = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    world.apply({**kind, "spec": {"hard": hard}})


def no_pods_left(world: World) -> None:
    quota(world, pods="0")
    world.create()


def no_services_left(world: World) -> None:
    quota(world, services="0")
    world.create()


def foreign(world: World) -> None:
    labels = {"app": "theirs"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "a", "image": "registry.example/a:1"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    world.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec})
    world.create()


def gated(world: World) -> None:
    world.create(podTemplate={"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}})


NONSENSE: Final[Json] = {"spec": {"nodeSelector": {"gpu": True}}}
"""A pod template that the API server takes for a piece of JSON, and the operator for what it is."""


def invalid(world: World) -> None:
    world.create(podTemplate=NONSENSE)


def synthetic(world: World) -> None:
    drafter = {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}}
    made_up = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.27}
    serving(world, drafter={**drafter, "parameters": made_up})


NOT_FOUND: Final = "dsd-cause: ModelNotFound\nHFValidationError: Repo id must be in the form 'namespace/repo_name'\n"
BAD_ARGUMENT: Final = "usage: main.py [-h]\nmain.py: error: unrecognized arguments: --no-such-option\n"
NO_SUCH_IMAGE: Final = 'failed to resolve reference "registry.example/x:1": registry.example/x:1: not found'

BRING: Final[Mapping[str, Callable[[World], Any]]] = {
    "pending": lambda world: world.create(),
    "pulling": one_pod(**waiting("ContainerCreating")),
    "loading": one_pod(**RUNNING),
    "ready": serving,
    "updating while serving": updating,
    "degraded": fell_back(**{**RUNNING, "started": True}),
    "degraded by a crash": fell_back(**ended(1, "ValueError: nobody has seen this")),
    "more pods on the way": one_more,
    "held up while serving": replacing(**waiting("ErrImagePull", NO_SUCH_IMAGE)),
    "failed while serving": replacing(**ended(2, BAD_ARGUMENT)),
    "overdue while serving": replacing_takes_long,
    "refused while serving": changed_to_nonsense,
    "scaled to zero": lambda world: world.create(replicas=0),
    "unschedulable": unschedulable,
    "held by a scheduling gate": gated,
    "image cannot be pulled": one_pod(**waiting("ErrImagePull", NO_SUCH_IMAGE)),
    "claim missing": lambda world: world.create(cache={"existingClaim": "models"}),
    "Secret missing": one_pod(**waiting("CreateContainerConfigError", 'secret "hub" not found')),
    "crash-looping": one_pod(**ended(1, "ValueError: nobody has seen this")),
    "out of memory": one_pod(**ended(137, reason="OOMKilled")),
    "model not found": one_pod(**ended(1, NOT_FOUND)),
    "argument invalid": one_pod(**ended(2, BAD_ARGUMENT)),
    "start-up too slow": one_pod(**ended(137, "INFO loading weights", seconds=32)),
    "deadline passed": overdue,
    "schedule partly applied": refused(1),
    "schedule refused by the engine": refused(0),
    "runtime plugin off": plugin_off,
    "token refused": token_refused,
    "operator cannot reach the pod": unreachable,
    "quota exceeded": no_pods_left,
    "foreign object in the way": foreign,
    "spec invalid": invalid,
    "child refused": no_services_left,
    "API missing": lambda world: serving(world, monitoring={"podMonitor": {"enabled": True}}),
    "claim not as asked": claim_of_another_class,
    "synthetic acceptance": synthetic,
}


def explain(world: World, cluster: ApiOnlyCluster, monkeypatch: pytest.MonkeyPatch) -> Json:
    """What `kubectl dsd explain` says; it waits for engines that do not answer less long than people may."""
    document = Cluster.engine_document

    def hurried(asked: Cluster, namespace: str, pod: str, path: str, _: float) -> Json:
        return document(asked, namespace, pod, path, 0.5)

    monkeypatch.setattr(Cluster, "engine_document", hurried)
    found: Json = Dsd(cluster.kubeconfig, world.namespace).json("explain", NAME)
    return found


@pytest.mark.parametrize("name", BRING)
def test_state(place: World, cluster: ApiOnlyCluster, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    state = named(name)
    BRING[name](place)
    found = wait_for(f"the state {name}", place.resource, lambda r: shows(r, state), 20, 0.05)
    assert wrong(found["status"], state) == []
    events = wait_for("its Events", place.events, lambda told: not untold(told, found["status"]), 20, 0.05)
    check_events(events, found["status"], state)
    assert health(found) == expected_health(state)
    check_explained(explain(place, cluster, monkeypatch), state)


def small_pods(world: World) -> None:
    """No pod of the namespace may ask for much."""
    kind = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    world.apply({**kind, "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}})
    world.create(resources={"limits": {"memory": "8Gi"}})


def restricted(world: World) -> None:
    """The namespace enforces a level that the template does not keep to."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    world.kube.patch("Namespace", None, world.namespace, {"metadata": {"labels": labels}})
    volumes = [{"name": "models", "hostPath": {"path": "/models"}}]
    mount = {"name": "models", "mountPath": "/models"}
    world.create(
        podTemplate={"spec": {"volumes": volumes, "containers": [{"name": "engine", "volumeMounts": [mount]}]}}
    )


def needs_limits(world: World) -> None:
    """A quota that wants to know how much memory each pod may use."""
    quota(world, **{"limits.memory": "64Gi"})
    world.create()


REFUSALS: Final[Mapping[str, tuple[Callable[[World], Any], str]]] = {
    "limit range": (small_pods, "maximum memory usage per Container is 1Gi"),
    "Pod Security": (restricted, "violates PodSecurity"),
    "quota that wants limits": (needs_limits, "must specify limits.memory"),
    "no such service account": (
        lambda world: world.create(podTemplate={"spec": {"serviceAccountName": "absent"}}),
        'serviceaccount "absent" not found',
    ),
    "no such priority class": (
        lambda world: world.create(podTemplate={"spec": {"priorityClassName": "absent"}}),
        "no PriorityClass with name absent was found",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_pods_that_are_never_made_say_why_before_and_after_the_deadline(place: World, name: str) -> None:
    bring, words = REFUSALS[name]
    state = named("quota exceeded")
    bring(place)
    for step in (None, pass_deadline):
        if step is not None:
            step(place)
        found = wait_for(f"the refusal: {name}", place.resource, lambda r: shows(r, state), 20, 0.05)
        assert words in place.condition("Ready")["message"]
        assert {c["reason"] for c in found["status"]["conditions"]} == {"PodCreationFailed", "PodNotReady"}


def test_a_quota_for_one_of_two_pods(place: World) -> None:
    """What there is room for serves; what there is none for says so."""
    quota(place, pods="1")
    place.create(replicas=2)
    place.engines(1)
    place.wait_condition("Available", status="True")
    ready = place.wait_condition("Ready", status="False", reason="PodCreationFailed")
    assert "exceeded quota" in ready["message"]
    place.schedule(SECOND)
    place.wait_schedule(applied=1)
    place.kubectl("delete", "resourcequota", "small")
    place.wait_pods(2)


def test_pods_that_are_held_fail_no_deadline(place: World) -> None:
    gated(place)
    for step in (None, pass_deadline):
        if step is not None:
            step(place)
        wait_for("the gate", place.resource, lambda r: shows(r, named("held by a scheduling gate")), 20, 0.05)


def test_a_change_that_mends_is_on_its_way_though_a_pod_from_before_it_still_crashes(place: World) -> None:
    """With maxUnavailable 1 the second of two broken pods stays until the first new one serves."""
    place.create(replicas=2)
    broken = place.wait_pods(2)
    for pod in broken:
        bind(place, pod)
        place.set_pod(pod, ADDRESS, ready=False, containerStatuses=[engine(**ended(2, BAD_ARGUMENT))])
    place.wait_condition("Progressing", status="False", reason="EngineArgumentInvalid")

    place.patch(engine={"maxNumSeqs": 64})
    place.wait_condition("Progressing", status="True", reason="RollingOut")
    place.wait_condition("Ready", status="False", reason="RollingOut")
    before = {pod["metadata"]["name"] for pod in broken}

    def staying() -> list[Json]:
        found = [pod for pod in place.kube.list("Pod", place.namespace) if pod["metadata"]["name"] in before]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    (left,) = wait_for("one of the two to go", staying, lambda pods: len(pods) == 1, 20, 0.05)
    assert left["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 2
    place.wait_condition("Progressing", status="True", reason="RollingOut")
    place.wait_condition("Available", status="False", reason="EngineArgumentInvalid")
