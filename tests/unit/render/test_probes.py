"""One field says how long a start may take; everything else that waits for it follows."""

from typing import Any

import pytest

from dsd_runtime.protocol import READY_PATH
from tests.unit.resources import manifests, resource


def deployment(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = manifests(resource(changes))["Deployment"]["spec"]
    return spec


def engine(**changes: Any) -> dict[str, Any]:
    return next(c for c in deployment(**changes)["template"]["spec"]["containers"] if c["name"] == "engine")


def patience(probe: dict[str, Any]) -> int:
    return int(probe["periodSeconds"] * probe["failureThreshold"])


@pytest.mark.parametrize("seconds", [30, 31, 3600, 86400])
def test_the_start_up_budget_is_one_field(seconds: int) -> None:
    changes = {"startup.timeoutSeconds": seconds}
    assert seconds <= patience(engine(**changes)["startupProbe"]) < seconds + 5
    assert deployment(**changes)["progressDeadlineSeconds"] > seconds
    before = engine()
    for other in ("readinessProbe", "livenessProbe"):
        assert engine(**changes)[other] == before[other], "it is for the start alone"


def test_nothing_but_the_startup_probe_can_end_a_start() -> None:
    """The kubelet asks the others only once it has passed; a delay of their own would be a second budget."""
    for name in ("readinessProbe", "livenessProbe"):
        assert "initialDelaySeconds" not in engine()[name]


def test_only_readiness_asks_for_the_schedule() -> None:
    paths = {name: engine()[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/health", "readinessProbe": READY_PATH, "livenessProbe": "/health"}


@pytest.mark.parametrize("name", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_every_probe_can_be_overridden(name: str) -> None:
    own = {"name": "engine", name: {"exec": {"command": ["true"]}, "periodSeconds": 77}}
    probe = engine(podTemplate={"spec": {"containers": [own]}})[name]
    assert (probe["exec"]["command"], probe["periodSeconds"]) == (["true"], 77)
    assert "httpGet" not in probe
