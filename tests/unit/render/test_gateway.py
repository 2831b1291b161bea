"""What a Gateway is told: which pods, which picker, which paths."""

from typing import Any, Final

from dsd_operator.render.labels import selector
from dsd_operator.render.names import names_for
from tests.unit.resources import manifests, resource

POOL: Final = {"gateway.inferencePool": {"enabled": True, "endpointPicker": {"name": "picker"}}}
ROUTE: Final = {"gateway.httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]}}


def made(kind: str, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = manifests(resource(changes))[kind]["spec"]
    return found


def test_neither_is_made_unasked() -> None:
    assert not {"InferencePool", "HTTPRoute"} & manifests(resource()).keys()


def test_the_pool_has_the_pods_that_answer() -> None:
    pool = made("InferencePool", **POOL)
    assert pool["selector"] == {"matchLabels": selector(names_for("demo"))}
    assert pool["targetPorts"] == [{"number": 8000}]
    picker = {"kind": "Service", "name": "picker", "port": {"number": 9002}, "failureMode": "FailClose"}
    assert pool["endpointPickerRef"] == picker


def test_a_port_of_the_service_is_not_that_of_the_pods() -> None:
    assert made("InferencePool", **POOL, **{"service.port": 80})["targetPorts"] == [{"number": 8000}]
    (rule,) = made("HTTPRoute", **ROUTE, **{"service.port": 80})["rules"]
    assert rule["backendRefs"] == [{"kind": "Service", "name": "demo", "port": 80}]


def test_only_paths_of_clients_are_routed() -> None:
    """The schedule, the metrics and the engine's other paths are not for the world outside."""
    (rule,) = made("HTTPRoute", **ROUTE)["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]


def test_the_route_goes_to_the_pool_where_there_is_one() -> None:
    (rule,) = made("HTTPRoute", **ROUTE, **POOL)["rules"]
    assert rule["backendRefs"] == [{"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo"}]


def test_gateways_and_hosts_are_the_user_s() -> None:
    refs = [{"name": "public", "namespace": "infra", "sectionName": "https", "port": 443}, {"name": "other"}]
    route = {"enabled": True, "parentRefs": refs, "hostnames": ["llama.example", "*.example"]}
    found = made("HTTPRoute", **{"gateway.httpRoute": route})
    assert found["parentRefs"] == refs
    assert found["hostnames"] == ["llama.example", "*.example"]
    assert "hostnames" not in made("HTTPRoute", **ROUTE)
