"""What is wrong with a pod, read from what the kubelet and the scheduler write."""

from typing import Any

import pytest

from dsd_operator.status.pods import can_serve, fault_of, is_up, phase_of
from dsd_operator.status.reasons import Reason
from tests.unit.status.cluster import pod, waiting

OOM = {"exitCode": 137, "reason": "OOMKilled"}
CRASH = {"exitCode": 1, "reason": "Error", "message": "INFO loading\nTraceback\n\nValueError: no such method\n"}


def sick(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return pod(ready=False, containerStatuses=list(containers), initContainerStatuses=list(init))


@pytest.mark.parametrize(
    ("status", "counts"),
    [({"phase": "Running"}, True), ({"phase": "Pending"}, True), ({"phase": "Failed", "reason": "Evicted"}, False),
     ({"phase": "Succeeded"}, False)],
)  # fmt: skip
def test_the_dead_do_not_count(status: dict[str, Any], counts: bool) -> None:
    assert can_serve(pod(**status)) is counts


def test_a_pod_that_is_being_deleted_does_not_count() -> None:
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert not can_serve(leaving)


@pytest.mark.parametrize(
    ("container", "reason", "words"),
    [
        (waiting("engine", "ImagePullBackOff", "manifest unknown"), Reason.IMAGE_PULL_BACK_OFF, "manifest unknown"),
        (waiting("engine", "ErrImagePull", "no route"), Reason.IMAGE_PULL_BACK_OFF, "no route"),
        (waiting("engine", "InvalidImageName", "bad"), Reason.IMAGE_PULL_BACK_OFF, "InvalidImageName"),
        (
            waiting("engine", "CreateContainerConfigError", 'secret "hub" not found'),
            Reason.CONTAINER_CONFIG_ERROR,
            'secret "hub" not found',
        ),
        (waiting("engine", "RunContainerError", "exec dsd-serve"), Reason.CONTAINER_START_ERROR, "exec dsd-serve"),
        (waiting("engine", "CrashLoopBackOff", "back-off 10s", CRASH), Reason.CRASH_LOOP_BACK_OFF, "no such method"),
        (waiting("engine", "CrashLoopBackOff", "back-off 10s", OOM), Reason.OOM_KILLED, "memory limit"),
    ],
)
def test_why_the_engine_does_not_run(container: dict[str, Any], reason: Reason, words: str) -> None:
    fault = fault_of(sick(container))
    assert fault is not None
    assert fault.reason is reason
    assert fault.message.startswith("container engine: ")
    assert words in fault.message


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_starting_is_no_fault(reason: str) -> None:
    assert fault_of(sick(waiting("engine", reason))) is None
    assert fault_of(pod(ready=False)) is None


def test_an_image_that_runs_as_root_comes_with_advice() -> None:
    text = "container has runAsNonRoot and image will run as root"
    fault = fault_of(sick(waiting("engine", "CreateContainerConfigError", text)))
    assert fault is not None
    assert "set podTemplate.spec.securityContext.runAsUser" in fault.message


def test_a_crash_loop_has_one_face() -> None:
    """Waiting, running again and just dead take turns; status and Events must not follow each turn."""
    back_off = waiting("engine", "CrashLoopBackOff", "back-off 5m0s restarting", CRASH)
    running = {"name": "engine", "ready": False, "state": {"running": {}}, "lastState": {"terminated": CRASH}}
    dead = {"name": "engine", "ready": False, "state": {"terminated": CRASH}, "lastState": {}}
    assert fault_of(sick(back_off)) == fault_of(sick(running)) == fault_of(sick(dead)) is not None


def test_the_sidecar_at_fault_is_named_whatever_its_place() -> None:
    engine = {"name": "engine", "ready": True, "state": {"running": {}}}
    fault = fault_of(sick(waiting("proxy", "CrashLoopBackOff", "", CRASH), engine))
    assert fault is not None
    assert fault.message.startswith("container proxy: ")


def test_an_init_container_that_blocks_is_named_not_the_engine() -> None:
    fault = fault_of(sick(waiting("engine", "PodInitializing"), init=(waiting("agent", "ImagePullBackOff", "denied"),)))
    assert fault is not None
    assert fault.message == "container agent: ImagePullBackOff: denied"


def test_the_engine_comes_before_a_sidecar_that_waits_for_it() -> None:
    fault = fault_of(sick(waiting("aaa", "CrashLoopBackOff", "", CRASH), waiting("engine", "ErrImagePull", "x")))
    assert fault is not None
    assert fault.message.startswith("container engine: ")


def test_an_old_crash_of_a_pod_that_serves_is_no_fault() -> None:
    engine = {"name": "engine", "ready": True, "state": {"running": {}}, "lastState": {"terminated": CRASH}}
    assert fault_of(pod(containerStatuses=[engine])) is None


@pytest.mark.parametrize("ended", [CRASH, OOM], ids=["crash", "memory"])
def test_an_old_crash_is_not_why_a_pod_that_served_since_is_not_ready(ended: dict[str, Any]) -> None:
    state = {"running": {"startedAt": "2030-01-01T00:01:00Z"}}
    engine = {"name": "engine", "ready": False, "started": True, "state": state, "lastState": {"terminated": ended}}
    times = (("2030-01-01T00:00:59Z", True), ("2030-01-01T00:01:00Z", True), ("2030-01-02T00:00:00Z", False))
    for since, told in times:  # of one second nobody knows which came first; an engine needs longer
        lost = {"type": "Ready", "status": "False", "lastTransitionTime": since}
        found = fault_of(pod(containerStatuses=[engine], conditions=[lost]))
        assert (found is not None) is told, "it crashed since it was ready" if told else "it was ready since it crashed"


def test_an_engine_that_was_told_to_end_and_did_is_no_fault() -> None:
    ended = {"name": "engine", "ready": False, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    assert fault_of(sick(ended)) is None
    assert fault_of(sick(waiting("engine", "CrashLoopBackOff", "", {"exitCode": 0}))) is not None, "again and again"


def test_unschedulable_and_held_are_two_things() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    full = pod(ready=False, phase="Pending", conditions=[condition])
    fault = fault_of(full)
    assert fault is not None
    assert (fault.reason, fault.message) == (Reason.UNSCHEDULABLE, "0/1 nodes")
    held = pod(ready=False, phase="Pending", conditions=[{**condition, "reason": "SchedulingGated"}])
    held["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    fault = fault_of(held)
    assert fault is not None
    assert fault.reason is Reason.SCHEDULING_GATED
    assert "kueue.x-k8s.io/admission" in fault.message


def phase(
    init: tuple[dict[str, Any], ...] = (), node: str = "n1", specs: Any = (), **engine: Any
) -> tuple[Reason, str]:
    starting = pod(ready=False, containerStatuses=[{"name": "engine", **engine}], initContainerStatuses=list(init))
    starting["spec"] = {"nodeName": node, "initContainers": list(specs)}
    assert fault_of(starting) is None
    found = phase_of(starting)
    return found.reason, found.message


def test_how_far_a_pod_is() -> None:
    running: dict[str, Any] = {"state": {"running": {}}}
    assert phase(node="")[0] is Reason.PENDING
    assert phase(state={"waiting": {"reason": "ContainerCreating"}})[0] is Reason.CONTAINER_CREATING
    assert phase()[0] is Reason.CONTAINER_CREATING
    assert phase(**running) == (Reason.STARTING, "container engine loads the model or captures graphs")
    assert phase(**running, started=True) == (Reason.STARTING, "container engine runs and is not ready")


def test_an_init_container_that_others_wait_for_is_named() -> None:
    ended = {"name": "fetch", "state": {"terminated": {"exitCode": 0}}, "ready": True}
    proxy = {"name": "proxy", "state": {"running": {}}, "started": False}
    sidecar = [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}]
    blocked = phase((ended, proxy), specs=sidecar, state={"waiting": {"reason": "PodInitializing"}})
    assert blocked == (Reason.CONTAINER_CREATING, "init container proxy has yet to end or to start")
    up = phase((ended, {**proxy, "started": True}), specs=sidecar, state={"running": {}})
    assert up[1] == "container engine loads the model or captures graphs"


def test_a_sidecar_that_is_not_ready_is_named() -> None:
    engine = {"name": "engine", "ready": True, "started": True, "state": {"running": {}}}
    proxy = {"name": "proxy", "ready": False, "started": True, "state": {"running": {}}}
    waiting_pod = pod(ready=False, containerStatuses=[proxy, engine])
    waiting_pod["spec"] = {"nodeName": "n1"}
    assert phase_of(waiting_pod).message == "container proxy runs and is not ready"


def test_who_has_passed_its_startup_probe_answers() -> None:
    engine = {"name": "engine", "ready": False, "started": True, "state": {"running": {}}}
    assert is_up(pod(ready=False, containerStatuses=[engine]))
    assert not is_up(pod(ready=False, containerStatuses=[{**engine, "started": False}]))
    assert is_up(pod())
