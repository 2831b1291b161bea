"""An autoscaler that scales the workload itself: the status counts what it asked for, and says who decides."""

from typing import Any

import pytest

from dsd_operator.status.summarize import summarize
from tests.unit.resources import resource
from tests.unit.status.cluster import NOW, deployment, observed, outcome, pod, push


def status(asked: int, scaled_by: str, ready: int) -> dict[str, Any]:
    live = deployment(replicas=ready, updated=ready, ready=ready)
    live["spec"] = {"replicas": asked}
    pods = [pod(f"demo-{number}") for number in range(ready)]
    seen = observed(live, pods, scaled_by=scaled_by)
    return summarize(resource({"replicas": 1}), seen, outcome([push(p["metadata"]["name"]) for p in pods]), NOW)


def ready(found: dict[str, Any]) -> dict[str, Any]:
    condition: dict[str, Any] = next(c for c in found["conditions"] if c["type"] == "Ready")
    return condition


def test_what_the_autoscaler_asked_for_is_what_is_wanted() -> None:
    found = status(3, "by-queue", 3)
    assert found["ready"] == "3/3"
    assert ready(found)["status"] == "True"
    assert "HorizontalPodAutoscaler by-queue scales the Deployment itself" in ready(found)["message"]
    assert "let it scale the DSDDeployment demo instead" in ready(found)["message"]


@pytest.mark.parametrize(("asked", "there"), [(3, 2), (2, 3)])
def test_until_its_pods_are_there_it_is_not_ready(asked: int, there: int) -> None:
    found = status(asked, "by-queue", there)
    assert found["ready"] == f"{there}/{asked}"
    assert ready(found)["status"] == "False"


def test_an_autoscaler_may_ask_for_none() -> None:
    found = status(0, "by-queue", 0)
    told = {c["type"]: (c["status"], c["reason"]) for c in found["conditions"]}
    assert found["ready"] == "0/0"
    assert told["Ready"] == told["ScheduleApplied"] == ("True", "ScaledToZero")


def test_what_the_resource_asks_for_is_not_what_is_there_to_use_a_schedule() -> None:
    live = deployment(replicas=0, updated=0, ready=0)
    live["spec"] = {"replicas": 1}
    found = summarize(resource({"replicas": 0}), observed(live, scaled_by="by-queue"), outcome(), NOW)
    applied = next(c for c in found["conditions"] if c["type"] == "ScheduleApplied")
    assert (applied["status"], applied["reason"]) == ("Unknown", "PodNotReady")


def test_a_number_set_by_hand_is_not_what_is_wanted() -> None:
    found = status(3, "", 3)
    assert found["ready"] == "3/1"
    assert ready(found)["status"] == "False"
