"""Children beside the pods that every cluster knows the kind of: what somebody deletes or changes is put right at once.

Not by the resync, which comes every ten minutes: a policy that is gone lets everybody in until then.
"""

from typing import Any, Final

import pytest

from tests.integration.world import NAME, World
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SECONDS: Final = 60.0

SPEC: Final[dict[str, Any]] = {"networkPolicy": {"enabled": True}, "cache": {"size": "1Gi"}}
CHANGES: Final[dict[str, dict[str, Any]]] = {
    "NetworkPolicy": {"ingress": [{}]},
    "PodDisruptionBudget": {"maxUnavailable": 5},
}


def test_what_is_deleted_comes_back_and_what_is_changed_is_set_back(world: World) -> None:
    world.operator()
    world.create(**SPEC)
    world.engines(1)
    world.wait_condition("Ready", status="True")
    for kind in ("NetworkPolicy", "PodDisruptionBudget", "PersistentVolumeClaim"):
        _comes_back(world, kind)
    for kind, change in CHANGES.items():
        _is_set_back(world, kind, change)


def _comes_back(world: World, kind: str) -> None:
    before = _uid(world, kind)
    world.kube.delete(kind, world.namespace, NAME)
    wait_for(f"another {kind}", lambda: _uid(world, kind), lambda uid: bool(uid) and uid != before, SECONDS)


def _is_set_back(world: World, kind: str, change: dict[str, Any]) -> None:
    wanted = world.wait_child(kind)["spec"]
    world.kube.patch(kind, world.namespace, NAME, {"spec": change})
    wait_for(f"the {kind} as it was", lambda: world.wait_child(kind)["spec"], lambda spec: spec == wanted, SECONDS)


def _uid(world: World, kind: str) -> str:
    found = world.kube.get(kind, world.namespace, NAME)
    return str(found["metadata"]["uid"]) if found and not found["metadata"].get("deletionTimestamp") else ""
