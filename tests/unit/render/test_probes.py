"""One field says how long a start may take; everything else that waits for it follows."""

from typing import Any

import pytest

from dsd_operator.api.common import MAX_INT32
from dsd_operator.render.lifecycle import END_SECONDS, PAUSE_SECONDS
from dsd_operator.render.probes import patience
from dsd_runtime.protocol import READY_PATH
from tests.unit.resources import manifests, resource


def deployment(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = manifests(resource(changes))["Deployment"]["spec"]
    return spec


def engine(**changes: Any) -> dict[str, Any]:
    return next(c for c in deployment(**changes)["template"]["spec"]["containers"] if c["name"] == "engine")


@pytest.mark.parametrize("seconds", [30, 31, 3600, 86400])
def test_the_start_up_budget_is_one_field(seconds: int) -> None:
    changes = {"startup.timeoutSeconds": seconds}
    assert seconds <= patience(engine(**changes)["startupProbe"]) < seconds + 5
    assert deployment(**changes)["progressDeadlineSeconds"] > seconds
    before = engine()
    for other in ("readinessProbe", "livenessProbe"):
        assert engine(**changes)[other] == before[other], "it is for the start alone"


@pytest.mark.parametrize(
    ("name", "field", "probe", "wait"),
    [
        ("engine", "containers", {"failureThreshold": 2880}, 14400),
        ("engine", "containers", {"failureThreshold": 720, "initialDelaySeconds": 7200}, 10800),
        ("agent", "initContainers", {"exec": {"command": ["true"]}, "failureThreshold": 1440}, 14400),
        ("engine", "containers", {"failureThreshold": 1}, 3600),
        ("engine", "containers", {"failureThreshold": MAX_INT32}, MAX_INT32 - 600),
    ],
)
def test_the_deadline_waits_for_a_startup_probe_of_the_pod_template(
    name: str, field: str, probe: dict[str, Any], wait: int
) -> None:
    """Else a roll-out would be told as failed while the kubelet still waits for the engine."""
    own = {"name": name, "startupProbe": probe, **({} if name == "engine" else {"image": "agent"})}
    assert deployment(podTemplate={"spec": {field: [own]}})["progressDeadlineSeconds"] == wait + 600


def test_nothing_but_the_startup_probe_can_end_a_start() -> None:
    """The kubelet asks the others only once it has passed; a delay of their own would be a second budget."""
    for name in ("readinessProbe", "livenessProbe"):
        assert "initialDelaySeconds" not in engine()[name]


def test_only_readiness_asks_for_the_schedule() -> None:
    paths = {name: engine()[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/health", "readinessProbe": READY_PATH, "livenessProbe": "/health"}


@pytest.mark.parametrize("drain", [0, 30, 86400])
def test_an_engine_that_hangs_is_not_given_the_time_to_drain(drain: int) -> None:
    """Its connections never end by themselves, and what waits for them would wait that long to start it anew."""
    changes = {"rollout.drainTimeoutSeconds": drain}
    probes = [engine(**changes)[name] for name in ("startupProbe", "livenessProbe")]
    assert {probe["terminationGracePeriodSeconds"] for probe in probes} == {PAUSE_SECONDS + END_SECONDS}
    pod_s = deployment(**changes)["template"]["spec"]["terminationGracePeriodSeconds"]
    assert pod_s == PAUSE_SECONDS + drain + END_SECONDS, "all other ends have it"
    assert "terminationGracePeriodSeconds" not in engine(**changes)["readinessProbe"], "Kubernetes refuses it there"


@pytest.mark.parametrize("name", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_every_probe_can_be_overridden(name: str) -> None:
    own = {"name": "engine", name: {"exec": {"command": ["true"]}, "periodSeconds": 77}}
    probe = engine(podTemplate={"spec": {"containers": [own]}})[name]
    assert (probe["exec"]["command"], probe["periodSeconds"]) == (["true"], 77)
    assert "httpGet" not in probe
