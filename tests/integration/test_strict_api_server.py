"""An API server that guards owner references, as OpenShift's does, and whose signing keys are rotated."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_runtime.protocol import ConfigFile, TokenReviewAuth
from tests.integration.conftest import RELEASE, SYSTEM, log_in, new_world, prepare
from tests.integration.world import CHILDREN, FIRST, NAME, SECOND, THIRD, World
from tools.cluster.api import ApiOnlyCluster
from tools.cluster.control_plane import TOKEN_KEY
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS = 60.0
"""After a refusal the pod is asked again in growing steps."""


@pytest.fixture(scope="module")
def strict() -> Iterator[ApiOnlyCluster]:
    with ApiOnlyCluster(admission_plugins=("OwnerReferencesPermissionEnforcement",)) as running:
        prepare(running.kubeconfig)
        yield running


@pytest.fixture
def login(strict: ApiOnlyCluster, tmp_path: Path) -> Path:
    """The operator's kubeconfig."""
    path = tmp_path / "operator-kubeconfig"
    log_in(strict.kubeconfig, path)
    return path


@pytest.fixture
def world(strict: ApiOnlyCluster, login: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    with new_world(Kube(strict.kubeconfig), strict.kubeconfig, login, tmp_path, request.node) as made:
        yield made


def owned(world: World, resource: Json) -> str:
    """A ConfigMap whose owner reference asks for what the operator never asks for."""
    meta = resource["metadata"]
    owner = {"apiVersion": resource["apiVersion"], "kind": resource["kind"], "name": meta["name"], "uid": meta["uid"]}
    blocking = {"name": "blocking", "namespace": world.namespace, "ownerReferences": [owner | BLOCKING]}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": blocking})


BLOCKING = {"blockOwnerDeletion": True}


def test_the_chart_s_rights_are_enough_to_make_children(world: World) -> None:
    world.operator()
    resource = world.create()
    account = f"--as=system:serviceaccount:{SYSTEM}:{RELEASE}"
    with pytest.raises(AssertionError, match="cannot set blockOwnerDeletion"):  # the plug-in is on
        world.kubectl("create", account, "-f", "-", given=owned(world, resource))
    world.wait_children()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND


def test_orphans_that_may_not_be_taken_over_are_told_and_the_schedule_goes_on(world: World) -> None:
    """Here a change of owner takes the right to delete, which the chart does not give."""
    world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    world.kube.delete("DSDDeployment", world.namespace, NAME, propagationPolicy="Orphan")
    find = ("DSDDeployment", world.namespace, NAME)
    wait_for("the resource to be gone", lambda: world.kube.get(*find), lambda found: found is None, 45)

    world.create(SECOND)
    condition = world.wait_condition("Ready", status="False", reason="ApplyFailed")
    assert "cannot set an ownerRef on a resource you can't delete" in condition["message"]
    assert "delete it, and it is made anew" in condition["message"]
    world.wait_schedule(applied=1)
    assert engine.triples() == SECOND

    for kind in CHILDREN:
        world.kube.delete(kind, world.namespace, NAME)
    world.wait_stored(SECOND)
    world.wait_status("no more failures", lambda s: "ApplyFailed" not in {c["reason"] for c in s["conditions"]})


def key_ids(config: ConfigFile | None) -> list[str]:
    """The keys that the file lets pods believe."""
    auth = config.auth if config is not None else None
    assert isinstance(auth, TokenReviewAuth)
    return [key["kid"] for key in auth.jwks["keys"]]


def test_signing_keys_are_rotated(world: World, strict: ApiOnlyCluster, login: Path) -> None:
    operator = world.operator()
    world.create()
    (engine,) = world.engines(1)
    world.wait_schedule(applied=1)
    world.schedule(SECOND)
    world.wait_schedule(applied=1)
    before = world.config_file()
    (first,) = key_ids(before)

    strict.rotate_token_keys("second", TOKEN_KEY)
    engine.config_file = lambda: before  # the kubelet has not refreshed the mounted file yet
    engine.refuse_tokens |= set(engine.tokens)  # the cached token has run out
    world.schedule(THIRD)
    world.wait_condition("ScheduleApplied", status="False", reason="TokenRefused")
    wait_for("the new key beside the old one", lambda: key_ids(world.config_file()), lambda k: len(k) == 2, SECONDS)
    assert first in key_ids(world.config_file())
    assert world.stored_triples() == THIRD
    engine.config_file = world.config_file
    wait_for("the engine to take it", engine.triples, lambda triples: triples == THIRD, SECONDS)
    world.wait_schedule(applied=1)

    log_in(strict.kubeconfig, login)  # the kubelet renews the operator's own token
    strict.rotate_token_keys("second")
    world.schedule(FIRST)
    wait_for("the engine to take it", engine.triples, lambda triples: triples == FIRST, SECONDS)
    world.wait_schedule(applied=1)
    assert first in key_ids(world.config_file()), "a token signed with it may still be in use"
    assert operator.running
