"""What each field of the spec is given. A value that is valid comes from the unit test that changes every field; this
table has the others, where the schema alone cannot tell them. A field without any fails `test_fields`.

Left out is what server-side apply itself makes of an empty list of set or map type, which it refuses for a new object
and takes for an old one as "nothing left", and of an empty map without a schema, which it turns into null.
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.campaign.schema import MISSING, Json, get, others, put, schema_of
from tests.unit.render.test_every_field import CHANGES
from tests.unit.resources import body

Values = tuple[Any, ...]

PATHS: Final = tuple(CHANGES)

WALKED: Final = tuple(path for path in PATHS if path != "replicas")
"""Without pods children settle by themselves; `test_replicas` has the field that makes them."""

_DIGEST: Final = "sha256:" + "a" * 64
_LONG_NAME: Final = "x" * 200

_SELECTOR: Final[Mapping[str, Values]] = {
    "matchLabels": ({"a": "c"}, {"a": "b", "c": "d"}, {"not a label!": "x"}, {}),
    "matchExpressions[].key": ("d.example/e", "not a label!"),
    "matchExpressions[].values": (["c", "d"], [], ["not a value!"]),
}
_PEER: Final[Mapping[str, Values]] = {
    **{f"{who}.{rest}": values for who in ("podSelector", "namespaceSelector") for rest, values in _SELECTOR.items()},
    "ipBlock.cidr": ("10.1.0.0/16", "10.0.0.0/40", "10.0.0.1"),
    "ipBlock.except": (["fd00::/9"], ["10.0.0.0/8"], []),
}

_CLAIMS: Final = {"resourceClaims": [{"name": name, "resourceClaimTemplateName": "gpu"} for name in "abc"]}
_NEEDED: Final[Mapping[str, Mapping[str, Any]]] = {
    "resources.claims[].name": {"podTemplate.spec": _CLAIMS},
    "resources.claims[].request": {"podTemplate.spec": _CLAIMS},
}
"""What the API server wants beside a field's values, and a renderer does not."""

OTHERS: Final[Mapping[str, Values]] = {
    "model.name": ("acme/third", "/models/local", "s3://bucket/model"),
    "model.revision": ("main", "0123abcd"),
    "model.servedNames": (["a"], ["a", "b", "c"], []),
    "model.tokenSecretRef.name": ("other.secret",),
    "model.tokenSecretRef.key": ("HF_TOKEN",),
    "drafter.method": ("suffix", "ngram", "eagle", "nonsense"),
    "drafter.model": ("acme/third", "/models/draft"),
    "drafter.revision": ("main",),
    "drafter.preparedTokens": ([3], [1, 2, 3]),
    "drafter.parameters": ({"quantization": "awq"}, {"quantization": "fp8", "enforce_eager": True}, {}, {"typo": 1}),
    "engine.image": (f"acme/engine@{_DIGEST}", "acme/engine:3", "https://acme/engine"),
    "engine.quantization": ("fp8",),
    "engine.gpuMemoryUtilization": (1, 0.25),
    "engine.extraArgs": (["--seed=1", "--enforce-eager"], ["--seed=2"], [], ["--port=1"], ["--no-such-option"]),
    "engine.env[].name": ("C", "VLLM_PORT", "VLLM_PLUGINS"),
    "engine.env[].value": ("", "$(B)", _LONG_NAME),
    "engine.env[].valueFrom": (
        {"secretKeyRef": {"name": "s", "key": "k"}},
        {"fieldRef": {"fieldPath": "no.such.path"}},
    ),
    "resources.limits": (
        {"memory": "16Gi"},
        {"memory": "8Gi", "cpu": 4},
        {"nvidia.com/gpu": 1},
        {"vendor.example/accelerator": "2"},
        {"memory": "much"},
        {},
    ),
    "resources.requests": ({"cpu": "1500m"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "-1"}, {}),
    "resources.claims[].name": ("c",),
    "resources.claims[].request": ("s",),
    "sharedMemory.sizeLimit": ("16Gi", 1073741824, "much"),
    "podTemplate.metadata": (
        {"labels": {"team": "c"}, "annotations": {"a": "b"}},
        {"labels": {"app.kubernetes.io/name": "mine"}},
        {"name": "mine"},
        {},
    ),
    "podTemplate.metadata.labels": ({"team": "b"}, {"team": "a", "tier": "x"}, {"not a label": "x"}, {}),
    "podTemplate.metadata.annotations": ({"note": "b"}, {"note": ""}, {"not a name!": "x"}, {}),
    "podTemplate.spec": (
        {"nodeSelector": {"pool": "b"}},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}}},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a b"}]}}},
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "Sometimes"}]},
        {"priorityClassName": "high"},
        {"priorityClassName": "Not A Name"},
        {"serviceAccountName": "mine"},
        {"serviceAccountName": "Not A Name"},
        {"restartPolicy": "Never"},
        {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
        {"securityContext": {"runAsUser": -1}},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"terminationGracePeriodSeconds": 90},
        {"terminationGracePeriodSeconds": -1},
        {"containers": [{"name": "engine", "readinessProbe": {"httpGet": {"path": "/nowhere", "port": 1}}}]},
        {"containers": [{"name": "sidecar", "image": "acme/sidecar:1"}]},
        {"containers": [{"name": "sidecar"}]},
        {"containers": [{"name": "engine", "image": "acme/mine"}]},
        {"containers": [{"name": "engine", "imagePullPolicy": "Sometimes"}]},
        {"initContainers": [{"name": "fetch", "image": "acme/fetch:1"}]},
        {"volumes": [{"name": "models", "emptyDir": {}}]},
        {"volumes": [{"name": "dsd-config", "emptyDir": {}}]},
        {"volumes": [{"name": "models"}], "containers": [{"name": "engine", "volumeMounts": [
            {"name": "models", "mountPath": "/models"}]}]},
        {"noSuchField": 1},
        {"containers": []},
        {},
    ),
    "rollout.restartedAt": ("2026-02-03T04:05:06Z", "yesterday"),
    "cache.existingClaim": ("other-claim", "Not A Name"),
    "cache.size": ("20Gi", "0", "much"),
    "cache.storageClass": ("slow", "", "Not A Name"),
    "podDisruptionBudget.maxUnavailable": (2, "50%", 0, "101%"),
    "service.annotations": ({"a": "c"}, {"a": "b", "c": "d"}, {"not a name!": "x"}, {}),
    "service.labels": ({"a": "c"}, {"a": "b", "c": "d"}, {"app.kubernetes.io/name": "mine"}, {}),
    "service.loadBalancerClass": ("c/d", "not a class!"),
    "service.loadBalancerSourceRanges": (["10.0.0.0/8", "192.168.0.0/16"], ["fd00::/8"], [], ["10.0.0.1"]),
    **{f"networkPolicy.{who}[].{rest}": v for who in ("clients", "monitoring") for rest, v in _PEER.items()},
    "gateway.inferencePool.endpointPicker.name": ("other-picker", "Not A Name"),
    "gateway.httpRoute.parentRefs[].name": ("other-gateway", "Not A Name"),
    "gateway.httpRoute.parentRefs[].namespace": ("edge", "Not A Name"),
    "gateway.httpRoute.parentRefs[].sectionName": ("http", "Not A Name"),
    "gateway.httpRoute.hostnames": (["*.llama.example"], ["a.example", "b.example"], ["https://a.example"], []),
    "monitoring.podMonitor.interval": ("1m", "1h"),
    "monitoring.podMonitor.labels": ({"release": "b"}, {"release": "a", "team": "b"}, {"not a label!": "x"}, {}),
}  # fmt: skip


def start_of(path: str) -> Json:
    """The spec in which a field is not set yet; without pods, so that the children settle by themselves."""
    return _spec(CHANGES[path].before, path)


def set_of(path: str) -> Json:
    """The same with the field's first value."""
    return _spec(CHANGES[path].after, path)


def _spec(changes: Mapping[str, Any], path: str) -> Json:
    return {**body({**_NEEDED.get(path, {}), **changes})["spec"], "replicas": 0}


def others_of(path: str) -> list[Any]:
    """Further values, good and bad: the server and a fresh deployment say which is which."""
    told = OTHERS.get(path)
    return list(told) if told is not None else others(schema_of(path), get(set_of(path), path))


def varied(path: str) -> dict[str, Json]:
    """Specs with the field at each further value, with every list pushed and popped, and with the field left out."""
    made, value = set_of(path), get(set_of(path), path)
    found = {f"to {_short(other)}": put(made, path, other) for other in others_of(path)}
    if isinstance(value, list):
        found |= {"popped": put(made, path, value[:-1]), "twice": put(made, path, [*value, *value])}
    return found | {"null": put(made, path, None), "unset": put(made, path, MISSING)}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 60 else f"{text[:57]}..."
