"""Who scales a workload: asked only where somebody else has set the number."""

import asyncio
from typing import Any, Final

import pytest

from dsd_operator.cluster.errors import ApiError, Forbidden, Retry
from dsd_operator.cluster.resources import Resource
from dsd_operator.cluster.scaling import scaler_of

CONTROLLER: Final[dict[str, Any]] = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "scale",
}
REPLICAS: Final[dict[str, Any]] = {"fieldsV1": {"f:spec": {"f:replicas": {}}}}
OURS: Final = {"manager": "dsd-operator", "operation": "Apply", **REPLICAS}


def workload(*managed: Any, kind: str = "Deployment") -> dict[str, Any]:
    meta = {"name": "demo", "namespace": "team-a", "managedFields": list(managed)}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"replicas": 3}}


def autoscaler(kind: str = "Deployment", name: str = "demo", api_version: str = "apps/v1") -> dict[str, Any]:
    target = {"apiVersion": api_version, "kind": kind, "name": name}
    return {"metadata": {"name": "by-queue"}, "spec": {"scaleTargetRef": target}}


class Cluster:
    """Answers one kind of list."""

    def __init__(self, *found: Any, error: ApiError | None = None) -> None:
        self.found, self.error, self.asked = list(found), error, 0

    async def list(self, resource: Resource, namespace: str) -> list[Any]:
        assert (resource.kind, namespace) == ("HorizontalPodAutoscaler", "team-a")
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.found


def scaler(cluster: Any, found: Any) -> str:
    return asyncio.run(scaler_of(cluster, found))


@pytest.mark.parametrize(
    "found",
    [
        None,
        workload(OURS),
        workload({**CONTROLLER, "subresource": "status", **REPLICAS}),
        workload({**CONTROLLER, "fieldsV1": {"f:spec": {}}}),
        workload({"manager": "kubectl-edit", "operation": "Update", **REPLICAS}),
    ],
)
def test_nobody_is_asked_where_the_number_is_ours(found: Any) -> None:
    cluster = Cluster(autoscaler())
    assert scaler(cluster, found) == ""
    assert cluster.asked == 0


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ([autoscaler()], "by-queue"),
        ([autoscaler(name="other"), autoscaler()], "by-queue"),
        ([autoscaler(api_version="apps/v1beta2")], "by-queue"),
        ([autoscaler(name="other")], ""),
        ([autoscaler(kind="DSDDeployment", api_version="dsd-operator.io/v1alpha1")], ""),
        ([autoscaler(api_version="example.com/v1")], ""),
        ([], ""),
    ],
)
@pytest.mark.parametrize("manager", ["kube-controller-manager", "keda", "kubectl"])
def test_an_autoscaler_that_names_it_is_found_whoever_wrote_the_number(
    found: list[Any], name: str, manager: str
) -> None:
    assert scaler(Cluster(*found), workload(OURS, {**CONTROLLER, "manager": manager, **REPLICAS})) == name


def test_without_the_right_to_look_the_number_counts_as_set_by_hand() -> None:
    cluster = Cluster(error=Forbidden(403, "no"))
    assert scaler(cluster, workload({**CONTROLLER, **REPLICAS})) == ""


def test_while_nobody_can_tell_nothing_is_set_back() -> None:
    with pytest.raises(Retry):
        scaler(Cluster(error=Retry(500, "busy")), workload({**CONTROLLER, **REPLICAS}))
