"""From the first version to this one, back, and up again, on the node: no engine restarts, schedules keep changing.

Charts, operators and runtime images are those of each version, and so is the CRD. What a pod was made from stays the
old version's, until somebody asks for a restart; tests/integration/test_upgrade.py has more kinds of specs, no engines.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dsd_runtime.schedule import Ranges, from_triples, schedule_hash
from tests.e2e.fleet import NAMESPACE as FLEET
from tests.e2e.outage import is_ready
from tools.cluster import api, images, paths
from tools.cluster.images import Images
from tools.testbed import earlier, install, manifests
from tools.testbed.crd import wait_established
from tools.testbed.engine import in_use
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity, names_of
from tools.testbed.install import Installation
from tools.testbed.kube import Json
from tools.testbed.site import remove, site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET, prompts

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "it is there"),
    pytest.mark.skipif(
        bool(os.environ.get("DSD_KUBECONFIG")),
        reason="removes the CRD and builds the earlier images: for the local node only",
    ),
]

NAMESPACE: Final = "dsd-upgrade"
NAME: Final = "kept"
SCHEDULES: Final = tuple(from_triples([(1, 4, k), (5, 16, 1)]) for k in (3, 2, 4, 0, 1))
PROMPT: Final = prompts(1)[0]
TOKENS: Final = 32


@dataclass(frozen=True)
class Version:
    """The files of a version, and its images."""

    name: str
    root: Path
    images: Images

    def install(self, installation: Installation) -> None:
        """Bring the release to this version; its operator is alone and ready, its CRD is served."""
        values = install.image_values(self.images.operator, self.images.runtime)
        kubeconfig = api.full_node_kubeconfig()
        install.helm_upgrade(kubeconfig, values, self.root / "charts" / "dsd-operator")
        wait_established(kubeconfig, install.CRD)
        wait_for(
            f"the operator of the {self.name} version, alone",
            lambda: [(is_ready(pod), image_of(pod)) for pod in installation.operator_pods()],
            lambda pods: pods == [(True, self.images.operator)],
            CHANGE_TIMEOUT,
        )
        crd = installation.kube.get("CustomResourceDefinition", None, install.CRD) or {}
        assert fields(crd) == fields(yaml.safe_load((self.root / "crds" / "dsddeployments.yaml").read_text()))


def fields(crd: Json) -> set[str]:
    """What a spec may say, at the top."""
    (version,) = crd["spec"]["versions"]
    return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


def image_of(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


@pytest.fixture
def new() -> Version:
    """This checkout."""
    return Version("new", paths.REPOSITORY, api.images())


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Version]:
    """The version that upgrades begin with; its images are gone afterwards."""
    root = earlier.extract(tmp_path / "old")
    with images.of_version(root) as built:
        yield Version("old", root, built)


@pytest.fixture
def bare(installation: Installation) -> Iterator[Installation]:
    """A node that never had an operator, and at the end has this checkout's.

    The engines that other tests share go first: not every selection has the test that removes them.
    """
    remove(installation.kube, FLEET)
    metadata = [found["metadata"] for found in installation.kube.list("DSDDeployment", None)]
    others = [f"{m['namespace']}/{m['name']}" for m in metadata]
    assert not others, f"an older CRD would take fields from the DSDDeployments {others}: remove them and run it again"
    try:
        install.uninstall(installation.kube, api.full_node_kubeconfig())
        yield installation
    finally:
        install.install()


@pytest.fixture
def handle(old: Version, bare: Installation) -> Iterator[Handle]:
    """A tiny engine that the old version has made, Ready."""
    old.install(bare)
    with site(bare.kube, NAMESPACE):
        bare.kube.apply(manifests.dsd_deployment(NAMESPACE, NAME, TARGET, DRAFTERS["ngram"], SCHEDULES[0]))
        found = Handle(bare.kube, NAMESPACE, NAME)
        found.wait_ready()
        yield found


def footprint(handle: Handle) -> dict[str, Any]:
    """What a roll-out or a restart would change."""
    deployment = handle.child("Deployment")
    return {
        "pods": sorted(identity(pod) for pod in handle.children("Pod")),
        "restarts": [status["restartCount"] for status in handle.pod()["status"]["containerStatuses"]],
        "image": image_of(handle.pod()),
        "ReplicaSets": names_of(handle.children("ReplicaSet")),
        "generation": deployment["metadata"]["generation"],
        "template": deployment["spec"]["template"],
    }


def change(handle: Handle, schedule: Ranges) -> float:
    """Change the schedule, see it arrive over HTTP, in every engine core; seconds until the status said so."""
    begin = time.monotonic()
    handle.set_schedule(schedule)
    handle.wait_applied(schedule)
    took = time.monotonic() - begin
    status = handle.engine().status()
    assert in_use(status) == {schedule_hash(schedule)}
    assert status.schedule is not None
    assert status.schedule.source == "http"
    assert status.last_error is None, "each version's files and requests are for the pods of the older one"
    return took


def test_no_engine_restarts_on_the_way_up_down_and_up_again(
    handle: Handle, bare: Installation, old: Version, new: Version
) -> None:
    assert old.images != new.images
    before, answer = footprint(handle), handle.engine().complete(PROMPT, TOKENS)
    assert before["image"] == old.images.runtime
    change(handle, SCHEDULES[1])

    for version, schedule in zip((new, old, new), SCHEDULES[2:], strict=True):
        version.install(bare)
        handle.wait_ready(CHANGE_TIMEOUT)
        took = change(handle, schedule)
        handle.wait_ready(CHANGE_TIMEOUT)
        assert handle.engine().complete(PROMPT, TOKENS) == answer, version.name
        assert footprint(handle) == before, f"by the {version.name} version"
        print(f"{version.name} version: {len(before['pods'])} pod as it was, the schedule changed in {took:.1f} s")

    handle.patch({"rollout": {"restartedAt": "2026-01-01T00:00:00Z"}})
    handle.wait_ready()
    assert image_of(handle.pod()) == new.images.runtime, "a restart brings what the new version renders"
    change(handle, SCHEDULES[0])
