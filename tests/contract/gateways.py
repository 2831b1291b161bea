"""The engines behind a Gateway (spec.gateway), and over several nodes: what the API server takes and refuses."""

from typing import Final

from tests.contract.admission import Case


def _pool(text: str) -> str:
    return f"spec: {{gateway: {{inferencePool: {{enabled: true, {text}}}}}}}"


def _route(text: str) -> str:
    return f"spec: {{gateway: {{httpRoute: {{enabled: true, {text}}}}}}}"


_GATEWAY: Final = "parentRefs: [{name: public}]"
_PICKER: Final = "endpointPicker: {name: picker}"

ACCEPTED: Final = (
    Case("gateway-empty", "spec: {gateway: {}}"),
    Case("gateway-null", "spec: {gateway: null}"),
    Case("gateway-parts-null", "spec: {gateway: {inferencePool: null, httpRoute: null}}"),
    Case("inference-pool", _pool(_PICKER)),
    Case("inference-pool-full", _pool("endpointPicker: {name: picker, port: 9443, failureMode: FailOpen}")),
    Case("inference-pool-prepared", "spec: {gateway: {inferencePool: {enabled: false, endpointPicker: {name: p}}}}"),
    Case("http-route", _route(_GATEWAY)),
    Case("http-route-full", _route(
        "hostnames: [llama.example.org, '*.example.org'], parentRefs: [{name: public, namespace: infra, "
        "sectionName: https, port: 443}, {name: other}]")),
    Case("http-route-off", "spec: {gateway: {httpRoute: {enabled: false, hostnames: [a.example]}}}"),
    Case("nodes-1", "spec: {engine: {nodes: 1}}"),
    Case("nodes-2", "spec: {engine: {nodes: 2, tensorParallelSize: 16}}"),
    Case("nodes-256", "spec: {engine: {nodes: 256, tensorParallelSize: 2048}}"),
)  # fmt: skip

_MULTIPLE: Final = "set engine.tensorParallelSize to a multiple of engine.nodes"

REJECTED: Final = (
    Case("pool-without-picker", "spec: {gateway: {inferencePool: {enabled: true}}}", "needs an endpoint picker"),
    Case("picker-without-name", _pool("endpointPicker: {port: 9002}"), "endpointPicker.name: Required value"),
    Case("picker-port", _pool("endpointPicker: {name: p, port: 70000}"), "less than or equal to 65535"),
    Case("picker-failure-mode", _pool("endpointPicker: {name: p, failureMode: Open}"), '"FailOpen", "FailClose"'),
    Case("route-without-gateway", "spec: {gateway: {httpRoute: {enabled: true}}}", "needs a Gateway: name it"),
    Case("route-with-no-gateways", _route("parentRefs: []"), "needs a Gateway: name it"),
    Case("gateway-without-name", _route("parentRefs: [{namespace: infra}]"), "parentRefs[0].name: Required value"),
    *(Case(f"hostname {name}", _route(f"{_GATEWAY}, hostnames: ['{name}']"), "hostnames[0]") for name in (
        "https://llama.example", "llama.example:443", "LLAMA.example", "a.*.example", "", "-a.example",
    )),
    Case("gateway-misspelt", "spec: {gateway: {httproute: {}}}", 'unknown field "spec.gateway.httproute"'),
    Case("nodes-0", "spec: {engine: {nodes: 0}}", "greater than or equal to 1"),
    Case("nodes-257", "spec: {engine: {nodes: 257}}", "less than or equal to 256"),
    Case("nodes-without-split", "spec: {engine: {nodes: 2}}", _MULTIPLE),
    Case("nodes-uneven", "spec: {engine: {nodes: 2, tensorParallelSize: 3}}", _MULTIPLE),
    Case("nodes-more-than-split", "spec: {engine: {nodes: 4, tensorParallelSize: 2}}", _MULTIPLE),
)  # fmt: skip
