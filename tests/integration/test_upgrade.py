"""From the first version to this one and back: no pod is made anew, and schedules change with every version.

The chart of each version is installed by helm, its operator runs as a process with the release's own account. The same
with real engines is in tests/e2e/test_upgrade.py.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_operator.render.history import KIND
from tests.chart import CHART
from tests.integration.operator_process import OperatorProcess
from tests.integration.releases import Commands, Release
from tests.integration.world import FIRST, NAME, SECOND, THIRD, Triples, World, ranges
from tools.cluster.api import ApiOnlyCluster
from tools.testbed import earlier
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "it is there"),
]

MODELS: Final = "models"
RICH: Final = "rich"

RICH_SPEC: Final[dict[str, Any]] = {
    "engine": {"maxNumSeqs": 32, "extraArgs": ["--seed=1"], "env": [{"name": "A", "value": "$(B)"}]},
    "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}},
    "sharedMemory": {"sizeLimit": "1Gi"},
    "startup": {"timeoutSeconds": 600},
    "podTemplate": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "kept"}},
        "spec": {
            "nodeSelector": {"pool": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "volumes": [{"name": "models", "emptyDir": {}}],
            "containers": [{"name": "engine", "volumeMounts": [{"name": "models", "mountPath": "/models"}]}],
        },
    },
}
"""As much as the first version took, in spellings that the API server changes."""


class Versions:
    """The release, and the operator of either version."""

    def __init__(self, commands: Commands, old: Path, folder: Path) -> None:
        self.release = Release(commands, "dsd", "dsd-system")
        self._old = old
        self._folder = folder
        self._count = 0

    @contextmanager
    def operating(self, *, old: bool) -> Iterator[OperatorProcess]:
        """Bring the chart to this version, and let its operator run."""
        self.release.install("--reset-values", chart=self._old / "charts" / "dsd-operator" if old else CHART)
        self._count += 1
        login = self.release.log_in(self._folder / f"login-{self._count}")
        process = OperatorProcess(login, self._folder / f"operator-{self._count}.log", **self.release.settings())
        if old:
            process.run_from(self._old)
        try:
            yield process.start()
            assert process.terminate() == 0, process.text()
        finally:
            process.close()


@pytest.fixture
def commands() -> Iterator[Commands]:
    """An API server that has never seen another version."""
    with ApiOnlyCluster() as cluster:
        yield Commands(cluster.kubeconfig)


@pytest.fixture
def world(commands: Commands, tmp_path: Path) -> Iterator[World]:
    """A namespace for the models."""
    with World(Kube(commands.kubeconfig), commands.kubeconfig, tmp_path / "login-1", MODELS, tmp_path) as made:
        yield made


def change(world: World, name: str, triples: Triples) -> None:
    """Another schedule; wait until the ConfigMap, which the pods mount, has it and the status is about it."""
    world.kube.patch("DSDDeployment", MODELS, name, {"spec": {"schedule": ranges(triples)}})

    def arrived() -> bool:
        resource = world.kube.get("DSDDeployment", MODELS, name) or {}
        file = world.kube.get("ConfigMap", MODELS, name) or {"data": {"config.yaml": ""}}
        wanted = f'"numSpeculativeTokens": {triples[-1][2]}'
        seen = resource.get("status", {}).get("observedGeneration") == resource["metadata"]["generation"]
        return seen and wanted in file["data"]["config.yaml"]

    wait_for(f"the schedule of {name} to arrive", arrived, bool, 30, 0.05)


def footprint(world: World) -> dict[str, Any]:
    """What a roll-out would change."""
    deployments = world.kube.list("Deployment", MODELS)
    made = {d["metadata"]["name"]: (d["metadata"]["generation"], d["spec"]["template"]) for d in deployments}
    assert made.keys() == {NAME, RICH}
    return {
        **made,
        "ReplicaSets": sorted(r["metadata"]["name"] for r in world.kube.list("ReplicaSet", MODELS)),
        "pods": sorted(p["metadata"]["uid"] for p in world.kube.list("Pod", MODELS)),
    }


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is not as it was."""
    return {name: (value, after[name]) for name, value in before.items() if after[name] != value}


def replica_sets(world: World, name: str) -> list[Json]:
    return world.kube.list("ReplicaSet", MODELS, f"dsd-operator.io/deployment={name}")


def test_neither_an_upgrade_nor_the_way_back_makes_a_pod_anew(commands: Commands, world: World, tmp_path: Path) -> None:
    versions = Versions(commands, earlier.extract(tmp_path / "old"), tmp_path)
    with versions.operating(old=True):
        world.create(replicas=2)
        world.create(name=RICH, **RICH_SPEC)
        world.wait_children()
        engines = world.engines(2, unknown=frozenset({"faults"}))  # pods keep the runtime that they were made with
        world.wait_schedule(2)
        change(world, RICH, SECOND)
        before = footprint(world)
    assert world.kube.list(KIND, MODELS) == []

    for old, triples in ((False, THIRD), (True, FIRST), (False, SECOND)):
        with versions.operating(old=old):
            change(world, NAME, triples)
            change(world, RICH, triples)
            world.wait_schedule(2)
            assert [engine.triples() for engine in engines] == [triples] * 2
            assert changed(before, footprint(world)) == {}, f"by the {'old' if old else 'new'} version"
    assert {r["metadata"]["ownerReferences"][0]["name"] for r in world.kube.list(KIND, MODELS)} == {NAME, RICH}

    # A wish that nobody was there to fulfil rolls once, and by the version that finds it.
    world.patch(engine={"maxNumSeqs": 64})
    with versions.operating(old=False):
        wait_for("the roll-out", lambda: len(replica_sets(world, NAME)), lambda n: n == 2, 30, 0.05)
        change(world, RICH, THIRD)
    assert len(replica_sets(world, RICH)) == 1
