"""spec.cache on the node: the second start of a pod downloads and compiles nothing, and needs no hub.

The engine runs as OpenShift would run it: with a user id that no passwd entry names, on a fresh volume that belongs to
root. The volume is of the kind `local`, made by hand and bound by its name.
"""

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.fleet import FIRST_SCHEDULE
from tests.e2e.outage import is_ready
from tools.cluster import paths
from tools.models import tiny
from tools.testbed import manifests
from tools.testbed.engine import Engine, pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, START_TIMEOUT, Handle
from tools.testbed.hub import Hub, hub
from tools.testbed.install import Installation, models_directory
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for
from tools.testbed.workload import prompts

IMAGE_PYTHON: Final = (3, 11)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(
        sys.version_info[:2] != IMAGE_PYTHON, reason="the image has Python 3.11 without its headers; these lend them"
    ),
]

NAMESPACE: Final = "dsd-e2e-cache"
NAME: Final = "cached"
USER: Final = 1000870000
PROMPT: Final = prompts(1)[0]
HEADERS: Final = "include"
"""Python's headers, on the volume: what the compiler writes includes Python.h, which the local image of vLLM lacks."""


@contextmanager
def place(kube: Kube, directory: Path) -> Iterator[None]:
    """A namespace, and a volume for the claim that the operator will make; nothing is left of them."""
    node = kube.list("Node", None)[0]["metadata"]["name"]
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {
        "storageClassName": "",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "2Gi"},
        "claimRef": {"namespace": NAMESPACE, "name": NAME},
        "local": {"path": str(directory)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    remove(kube, directory)
    directory.mkdir(mode=0o755, parents=True)
    shutil.copytree(sysconfig.get_path("include"), directory / HEADERS)
    try:
        kube.apply(manifests.namespace(NAMESPACE))
        kube.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": NAMESPACE}, "spec": spec})
        yield
    finally:
        remove(kube, directory)


def remove(kube: Kube, directory: Path) -> None:
    kube.remove_namespace(NAMESPACE, 2 * CHANGE_TIMEOUT)
    kube.delete("PersistentVolume", None, NAMESPACE)
    wait_for("the volume to be gone", lambda: kube.get("PersistentVolume", None, NAMESPACE), lambda v: v is None,
             CHANGE_TIMEOUT)  # fmt: skip
    shutil.rmtree(directory, ignore_errors=True)


def node_address(kube: Kube) -> str:
    addresses = kube.list("Node", None)[0]["status"]["addresses"]
    return str(next(entry["address"] for entry in addresses if entry["type"] == "InternalIP"))


def deployment(endpoint: str) -> Json:
    """Target and drafter come from the hub, and vLLM compiles."""
    made = manifests.dsd_deployment(
        NAMESPACE, NAME, "target", manifests.Drafter("draft_model", "draft"), FIRST_SCHEDULE
    )
    spec = made["spec"]
    spec["model"]["name"], spec["drafter"]["model"] = "acme/target", "acme/draft"
    env = [variable for variable in spec["engine"]["env"] if variable["name"] != "HF_HUB_OFFLINE"]
    more = {"HF_ENDPOINT": endpoint, "CPATH": f"/cache/{HEADERS}"}
    env += [{"name": name, "value": value} for name, value in more.items()]
    spec["engine"] |= {"extraArgs": [], "env": env}
    spec["cache"] = {"size": "1Gi", "storageClass": ""}
    context = {"runAsUser": USER, "runAsGroup": 0, "fsGroup": USER}
    spec["podTemplate"] = {"spec": {"securityContext": context, "terminationGracePeriodSeconds": 10}}
    return made


def served(handle: Handle) -> Engine:
    """The engine of the pod that is there now: just after a deletion the status still speaks of the one before."""
    handle.wait_ready()
    (pod,) = wait_for("one pod, ready", handle.pods, lambda pods: [is_ready(p) for p in pods] == [True], START_TIMEOUT)
    return Engine(pod_url(pod["status"]["podIP"]))


def replace_pod(handle: Handle) -> None:
    before = handle.pod()["metadata"]
    handle.kube.delete("Pod", NAMESPACE, before["name"])
    wait_for(
        "another pod",
        handle.pods,
        lambda pods: len(pods) == 1 and pods[0]["metadata"]["uid"] != before["uid"],
        START_TIMEOUT,
    )


def compiled(directory: Path) -> dict[str, int]:
    """The libraries that the compiler made, with the time of their last change.

    vLLM 0.32 also keeps what it traced, and on CPUs fails to load that ("no attribute 'finalize_loading'"): there it
    traces again, finds every library, and writes its own file anew. So that file proves nothing here.
    """
    return {str(file.relative_to(directory)): file.stat().st_mtime_ns for file in directory.rglob("*.so")}


def weights(asked: Hub) -> set[str]:
    return {path for path in asked.downloads() if path.endswith(".safetensors")}


def test_a_second_start_downloads_and_compiles_nothing(installation: Installation) -> None:
    kube, directory = installation.kube, paths.cache_root() / "e2e-cache-volume"
    models = tiny.make(models_directory())
    hosted = {f"acme/{name}": models / name for name in ("target", "draft")}
    handle = Handle(kube, NAMESPACE, NAME)
    with place(kube, directory):
        with hub(hosted, node_address(kube)) as asked:
            kube.apply(deployment(asked.address))
            first = served(handle).complete(PROMPT, 16)
            assert {path.split("/resolve/")[0] for path in weights(asked)} == {"/acme/target", "/acme/draft"}
            cache = compiled(directory)
            assert any("torch_compile_cache" in name for name in cache), cache

            asked.asked.clear()
            replace_pod(handle)
            assert served(handle).complete(PROMPT, 16) == first
            assert asked.downloads() == []
            assert compiled(directory) == cache

        handle.patch({"cache": {"offline": True}})  # rolls; the hub is gone
        assert served(handle).complete(PROMPT, 16) == first
        # Offline vLLM takes the path in place of the model's id, and compiles for that name once more.
        assert cache.items() <= compiled(directory).items()

        assert kube.get("PersistentVolumeClaim", NAMESPACE, NAME) is not None
        kube.delete("DSDDeployment", NAMESPACE, NAME)
        wait_for(
            "the claim to go with the resource",
            lambda: kube.get("PersistentVolumeClaim", NAMESPACE, NAME),
            lambda claim: claim is None,
            2 * CHANGE_TIMEOUT,
        )
