"""The PodMonitor: rendered where it is wanted, and nothing else changes with it."""

from typing import Any

import pytest

from dsd_operator.render.extras import unwanted
from tests.unit.resources import manifests, resource

ON = {"monitoring": {"podMonitor": {"enabled": True}}}


def made(**changes: Any) -> dict[str, Any]:
    return manifests(resource({"monitoring": {"podMonitor": {"enabled": True, **changes}}}))["PodMonitor"]


def test_it_is_there_where_it_is_wanted_and_unwanted_elsewhere() -> None:
    assert "PodMonitor" not in manifests(resource())
    (absent,) = (identity for identity in unwanted(resource()) if identity["kind"] == "PodMonitor")
    assert absent["metadata"]["name"] == "demo"
    assert "PodMonitor" not in {identity["kind"] for identity in unwanted(resource(ON))}


def test_it_selects_the_pods_of_this_resource_by_the_port_of_the_engine() -> None:
    monitor, deployment = made(), manifests(resource())["Deployment"]
    assert monitor["spec"]["selector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}
    assert "interval" not in endpoint
    assert made(interval="15s")["spec"]["podMetricsEndpoints"][0]["interval"] == "15s"


def test_series_carry_the_name_of_the_resource_also_where_labels_are_shortened() -> None:
    name = "x" * 200
    monitor = manifests(resource(ON, name=name))["PodMonitor"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    given = {r["targetLabel"]: r["replacement"] for r in endpoint["relabelings"]}
    assert given == {"dsd_namespace": "team-a", "dsd_name": name}


def test_labels_are_added_and_ours_stay() -> None:
    own = manifests(resource())["Service"]["metadata"]["labels"]
    labels = made(labels={"release": "a", "app.kubernetes.io/name": "b"})["metadata"]["labels"]
    assert labels == {**own, "release": "a"}


@pytest.mark.parametrize("changes", [{}, {"interval": "1m"}, {"labels": {"a": "b"}}])
def test_nothing_else_changes(changes: dict[str, Any]) -> None:
    with_it = manifests(resource({"monitoring": {"podMonitor": {"enabled": True, **changes}}}))
    with_it.pop("PodMonitor")
    assert with_it == manifests(resource())


def test_a_bad_pod_template_holds_it_up_as_little_as_the_schedule() -> None:
    bad = manifests(resource({**ON, "podTemplate": {"spec": {"enableServiceLinks": True}}}))
    assert "Deployment" not in bad
    assert "PodMonitor" in bad
