"""Whatever is deleted by hand comes back, with the schedule that is current then."""

import subprocess

import pytest

from dsd_runtime.protocol import CONFIG_FILE_NAME, ConfigFile
from dsd_runtime.schedule import Ranges, from_triples, schedule_hash
from tools.cluster.api import full_node_kubeconfig, kubectl
from tools.testbed.engine import Engine, in_use, pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, DEPLOYMENT_LABEL, START_TIMEOUT, Handle, identity
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.e2e


def test_a_deleted_config_map_comes_back_with_the_current_schedule(shared: Handle) -> None:
    pod, schedule = shared.pod(), change(shared, from_triples([(1, 5, 2), (6, 64, 1)]))
    old = shared.child("ConfigMap")

    new = delete_and_wait(shared, old)

    content = ConfigFile.model_validate_json(new["data"][CONFIG_FILE_NAME])
    assert content.ranges == schedule
    assert identity(shared.pod()) == identity(pod)


def test_a_deleted_service_comes_back_and_leads_to_the_engine(shared: Handle) -> None:
    pod = shared.pod()

    new = delete_and_wait(shared, shared.child("Service"))

    service = Engine(pod_url(new["spec"]["clusterIP"], new["spec"]["ports"][0]["port"]), timeout=5)
    wait_for("the Service to lead to the engine", service.healthy, bool, CHANGE_TIMEOUT)
    assert in_use(service.status()) == in_use(shared.engine().status()) == {shared.status()["schedule"]["hash"]}
    assert identity(shared.pod()) == identity(pod)


def test_a_drain_takes_the_only_pod_serving_or_loading_and_it_comes_back_with_the_current_schedule(
    shared: Handle,
) -> None:
    """A budget that could not be met by one replica, or by an engine that never gets ready, would hold drains up."""
    schedule = change(shared, from_triples([(1, 3, 4), (4, 64, 2)]))
    assert shared.child("PodDisruptionBudget")["status"]["expectedPods"] == 1

    served = drained(shared)
    loaded = drained(shared)
    assert served["metadata"]["uid"] != loaded["metadata"]["uid"]

    assert first_schedule_of_new_pod(shared) == {schedule_hash(schedule)}
    shared.wait_applied(schedule, START_TIMEOUT)


def test_a_deleted_deployment_comes_back_with_the_current_schedule(shared: Handle) -> None:
    schedule = change(shared, from_triples([(1, 8, 1), (9, 64, 3)]))
    pod = shared.pod()

    new = delete_and_wait(shared, shared.child("Deployment"))

    assert new["metadata"]["ownerReferences"][0]["uid"] == shared.resource()["metadata"]["uid"]
    wait_for(
        "the old pod to be gone", shared.pods, lambda pods: pod["metadata"]["uid"] not in uids(pods), START_TIMEOUT
    )
    assert first_schedule_of_new_pod(shared) == {schedule_hash(schedule)}
    shared.wait_applied(schedule, START_TIMEOUT)


def change(handle: Handle, schedule: Ranges) -> Ranges:
    """Move away from the schedule that the resource was created with."""
    handle.set_schedule(schedule)
    handle.wait_applied(schedule)
    return schedule


def delete_and_wait(handle: Handle, child: Json) -> Json:
    """Delete a child and wait until another one of its kind stands in its place; returns that one."""
    kind, meta = child["kind"], child["metadata"]
    handle.kube.delete(kind, handle.namespace, meta["name"])
    found = wait_for(
        f"another {kind} in the place of {meta['name']}",
        lambda: [c for c in handle.children(kind) if "deletionTimestamp" not in c["metadata"]],
        lambda children: len(children) == 1 and meta["uid"] not in uids(children),
        2 * CHANGE_TIMEOUT,
    )
    return found[0]


def drained(handle: Handle) -> Json:
    """Drain the node of this resource's pod, which is somewhere by then; returns the pod that had to go."""
    (pod,) = wait_for(
        "one pod, on a node",
        handle.pods,
        lambda pods: len(pods) == 1 and "nodeName" in pods[0]["spec"],
        CHANGE_TIMEOUT,
    )
    node, selector = pod["spec"]["nodeName"], f"--pod-selector={DEPLOYMENT_LABEL}={handle.label}"
    try:
        run("drain", node, selector, "--delete-emptydir-data", f"--timeout={2 * CHANGE_TIMEOUT:.0f}s")
    finally:
        run("uncordon", node)
    assert pod["metadata"]["uid"] not in uids(handle.pods())
    return pod


def run(*arguments: str) -> None:
    """kubectl; it must succeed."""
    command = [str(kubectl()), "--kubeconfig", str(full_node_kubeconfig()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_TIMEOUT)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"


def uids(objects: list[Json]) -> set[str]:
    """UIDs of objects."""
    return {found["metadata"]["uid"] for found in objects}


def first_schedule_of_new_pod(handle: Handle) -> set[str]:
    """Hashes in use at the very first answer of the new pod's engine: never the start-up table, nor an older one."""
    (pod,) = wait_for(
        "the one new pod to get an address",
        handle.pods,
        lambda pods: len(pods) == 1 and bool(pods[0]["status"].get("podIP")),
        CHANGE_TIMEOUT,
    )
    engine = Engine(pod_url(pod["status"]["podIP"]))
    return in_use(wait_for("the new engine's first answer", engine.status, bool, START_TIMEOUT, 0.1))
