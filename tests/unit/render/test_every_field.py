"""Every field of the CRD does what docs/reference/fields.md says: found out by changing each one and rendering.

The fields come from the CRD's schema, so a new one fails here until its change is written down below.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.render.extras import BY_KIND
from dsd_operator.render.plan import digest
from dsd_operator.render.preflight import problems
from tests.unit.resources import manifests, resource
from tools.generate_fields import TARGET, Effect, fields, render

FIELDS: Final = {found.path: found.effect for found in fields()}

HIGHEST_ONLY: Final = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}]
PLAIN: Final = [{"name": "A", "value": "1"}]
MODEL: Final = {"method": "draft_model", "model": "acme/draft", "numSpeculativeTokens": 3}
MONITORED: Final[Mapping[str, Any]] = {"enabled": True}
MONITOR: Final = {"monitoring.podMonitor": MONITORED}
BALANCED: Final[Mapping[str, Any]] = {"type": "LoadBalancer"}
GUARDED: Final[Mapping[str, Any]] = {"enabled": True}
IN: Final[Mapping[str, Any]] = {"key": "a", "operator": "In", "values": ["b"]}
PEERS: Final[Mapping[str, tuple[Any, Any]]] = {
    **{
        f"{selector}.{path}": ({selector: before}, {selector: after})
        for selector in ("podSelector", "namespaceSelector")
        for path, before, after in (
            ("matchLabels", {}, {"matchLabels": {"a": "b"}}),
            ("matchExpressions[].key", {"matchExpressions": [IN]}, {"matchExpressions": [{**IN, "key": "c"}]}),
            (
                "matchExpressions[].operator",
                {"matchExpressions": [IN]},
                {"matchExpressions": [{**IN, "operator": "NotIn"}]},
            ),
            ("matchExpressions[].values", {"matchExpressions": [IN]}, {"matchExpressions": [{**IN, "values": ["c"]}]}),
        )
    },
    "ipBlock.cidr": ({"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "10.0.0.0/9"}}),
    "ipBlock.except": ({"ipBlock": {"cidr": "::/0"}}, {"ipBlock": {"cidr": "::/0", "except": ["fd00::/8"]}}),
}
"""Fields of a peer of a network policy: a peer before the change, and after it."""
CLAIMS: Final[Mapping[str, Any]] = {
    "podTemplate.spec": {"resourceClaims": [{"name": n, "resourceClaimTemplateName": "gpu"} for n in ("a", "b")]}
}
DSPARK: Final = {"method": "dspark", "numSpeculativeTokens": 3}


@dataclass(frozen=True)
class Change:
    """From BASE with `before` to the same with `after`; both are valid."""

    after: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)


POOL: Final = "gateway.inferencePool"
PICKER: Final = {"name": "picker"}
POOLED: Final = {"enabled": True, "endpointPicker": PICKER}
ROUTE: Final = "gateway.httpRoute"
GATEWAY: Final = {"name": "public"}
ROUTED: Final = {"enabled": True, "parentRefs": [GATEWAY]}


def to(path: str, value: Any, **before: Any) -> Change:
    return Change({**before, path: value}, before)


def schedule(**changes: int) -> Change:
    first = {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}
    second = {"startBatchSize": 9, "endBatchSize": 256, "numSpeculativeTokens": 1, **changes}
    return Change({"schedule": [first, second]})


CHANGES: Final[Mapping[str, Change]] = {
    "model.name": to("model.name", "acme/other"),
    "model.revision": to("model.revision", "v2"),
    "model.servedNames": to("model.servedNames", ["a", "b"]),
    "model.tokenSecretRef.name": Change(
        {"model.tokenSecretRef": {"name": "b", "key": "k"}}, {"model.tokenSecretRef": {"name": "a", "key": "k"}}
    ),
    "model.tokenSecretRef.key": Change(
        {"model.tokenSecretRef": {"name": "a", "key": "l"}}, {"model.tokenSecretRef": {"name": "a", "key": "k"}}
    ),
    "drafter.method": Change({"drafter.method": "ngram_gpu", "schedule": HIGHEST_ONLY}, {"schedule": HIGHEST_ONLY}),
    "drafter.model": Change({"drafter": {**MODEL, "model": "acme/other"}}, {"drafter": MODEL}),
    "drafter.revision": Change({"drafter": {**MODEL, "revision": "v2"}}, {"drafter": MODEL}),
    "drafter.numSpeculativeTokens": to("drafter.numSpeculativeTokens", 4),
    "drafter.preparedTokens": to("drafter.preparedTokens", [1, 3]),
    "drafter.tensorParallelSize": Change({"drafter": {**MODEL, "tensorParallelSize": 1}}, {"drafter": MODEL}),
    "drafter.promptLookup.min": to("drafter.promptLookup.min", 3),
    "drafter.promptLookup.max": to("drafter.promptLookup.max", 5),
    "drafter.parameters": Change({"drafter": {**MODEL, "parameters": {"quantization": "fp8"}}}, {"drafter": MODEL}),
    "drafter.parameters.parallel_drafting": Change(
        {"drafter": {**MODEL, "parameters": {"parallel_drafting": True}}, "schedule": HIGHEST_ONLY},
        {"drafter": MODEL, "schedule": HIGHEST_ONLY},
    ),
    "drafter.parameters.use_heterogeneous_vocab": Change(
        {"drafter": {**MODEL, "parameters": {"use_heterogeneous_vocab": True}}}, {"drafter": MODEL}
    ),
    "drafter.parameters.enable_adaptive_verification": Change(
        {"drafter": {**DSPARK, "parameters": {"enable_adaptive_verification": True}}, "engine.modelRunner": "V2"},
        {"drafter": DSPARK, "engine.modelRunner": "V2"},
    ),
    "schedule[].startBatchSize": schedule(startBatchSize=20),
    "schedule[].endBatchSize": schedule(endBatchSize=100),
    "schedule[].numSpeculativeTokens": schedule(numSpeculativeTokens=2),
    "smoothing.dwellSteps": to("smoothing.dwellSteps", 20),
    "smoothing.marginPercent": to("smoothing.marginPercent", 10),
    "engine.image": to("engine.image", "acme/engine:2"),
    "engine.imagePullPolicy": to("engine.imagePullPolicy", "Always"),
    "engine.modelRunner": to("engine.modelRunner", "V1"),
    "engine.maxNumSeqs": to("engine.maxNumSeqs", 64),
    "engine.maxModelLen": to("engine.maxModelLen", 2048),
    "engine.dtype": to("engine.dtype", "bfloat16"),
    "engine.quantization": to("engine.quantization", "awq"),
    "engine.tensorParallelSize": to("engine.tensorParallelSize", 2),
    "engine.nodes": to("engine.nodes", 2, **{"engine.tensorParallelSize": 2}),
    "engine.gpuMemoryUtilization": to("engine.gpuMemoryUtilization", 0.8),
    "engine.extraArgs": to("engine.extraArgs", ["--seed=1"]),
    "engine.env[].name": Change({"engine.env": [{"name": "B", "value": "1"}]}, {"engine.env": PLAIN}),
    "engine.env[].value": Change({"engine.env": [{"name": "A", "value": "2"}]}, {"engine.env": PLAIN}),
    "engine.env[].valueFrom": Change(
        {"engine.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}, {"engine.env": PLAIN}
    ),
    "replicas": to("replicas", 3),
    "resources.limits": to("resources", {"limits": {"memory": "8Gi"}}),
    "resources.requests": to("resources", {"requests": {"cpu": "2"}}),
    "resources.claims[].name": Change(
        {"resources": {"claims": [{"name": "b"}]}, **CLAIMS}, {"resources": {"claims": [{"name": "a"}]}, **CLAIMS}
    ),
    "resources.claims[].request": Change(
        {"resources": {"claims": [{"name": "a", "request": "r"}]}, **CLAIMS},
        {"resources": {"claims": [{"name": "a"}]}, **CLAIMS},
    ),
    "sharedMemory.sizeLimit": to("sharedMemory.sizeLimit", "16Gi"),
    "cache.existingClaim": to("cache.existingClaim", "models"),
    "cache.size": to("cache", {"size": "2Gi"}, cache={"size": "1Gi"}),
    "cache.storageClass": to("cache", {"size": "1Gi", "storageClass": "fast"}, cache={"size": "1Gi"}),
    "cache.accessMode": to("cache", {"size": "1Gi", "accessMode": "ReadWriteMany"}, cache={"size": "1Gi"}),
    "cache.offline": to("cache.offline", True),
    "cache.fsGroup": to("cache", {"existingClaim": "a", "fsGroup": 1000}, cache={"existingClaim": "a"}),
    "startup.timeoutSeconds": to("startup.timeoutSeconds", 600),
    "rollout.maxSurge": to("rollout.maxSurge", 1),
    "rollout.maxUnavailable": to("rollout.maxUnavailable", 2),
    "rollout.minReadySeconds": to("rollout.minReadySeconds", 60),
    "rollout.drainTimeoutSeconds": to("rollout.drainTimeoutSeconds", 300),
    "rollout.restartedAt": to("rollout.restartedAt", "2026-01-01T00:00:00Z"),
    "podTemplate.metadata": to("podTemplate.metadata", {"labels": {"team": "b"}}),
    "podTemplate.metadata.labels": to("podTemplate.metadata.labels", {"team": "a"}),
    "podTemplate.metadata.annotations": to("podTemplate.metadata.annotations", {"note": "a"}),
    "monitoring.podMonitor.enabled": to("monitoring.podMonitor.enabled", True),
    "monitoring.podMonitor.interval": to("monitoring.podMonitor", {**MONITORED, "interval": "30s"}, **MONITOR),
    "monitoring.podMonitor.labels": to("monitoring.podMonitor", {**MONITORED, "labels": {"release": "a"}}, **MONITOR),
    "service.type": to("service.type", "NodePort"),
    "service.port": to("service.port", 80),
    "service.nodePort": to("service", {"type": "NodePort", "nodePort": 30080}, service={"type": "NodePort"}),
    "service.annotations": to("service.annotations", {"a": "b"}),
    "service.labels": to("service.labels", {"a": "b"}),
    "service.ipFamilyPolicy": to("service.ipFamilyPolicy", "PreferDualStack"),
    "service.externalTrafficPolicy": to("service", {**BALANCED, "externalTrafficPolicy": "Local"}, service=BALANCED),
    "service.loadBalancerClass": to("service", {**BALANCED, "loadBalancerClass": "a/b"}, service=BALANCED),
    "service.loadBalancerSourceRanges": to(
        "service", {**BALANCED, "loadBalancerSourceRanges": ["10.0.0.0/8"]}, service=BALANCED
    ),
    "networkPolicy.enabled": to("networkPolicy.enabled", True),
    **{
        f"networkPolicy.{who}[].{path}": to(
            "networkPolicy", {**GUARDED, who: [after]}, networkPolicy={**GUARDED, who: [before]}
        )
        for who in ("clients", "monitoring")
        for path, (before, after) in PEERS.items()
    },
    "podDisruptionBudget.enabled": to("podDisruptionBudget.enabled", False),
    "podDisruptionBudget.maxUnavailable": to("podDisruptionBudget.maxUnavailable", "25%"),
    "gateway.inferencePool.enabled": to("gateway.inferencePool.enabled", True, **{f"{POOL}.endpointPicker": PICKER}),
    **{
        f"{POOL}.endpointPicker.{name}": to(
            POOL, {"enabled": True, "endpointPicker": {**PICKER, name: value}}, **{POOL: POOLED}
        )
        for name, value in (("name", "other"), ("port", 9443), ("failureMode", "FailOpen"))
    },
    "gateway.httpRoute.enabled": to("gateway.httpRoute.enabled", True, **{f"{ROUTE}.parentRefs": [GATEWAY]}),
    **{
        f"{ROUTE}.parentRefs[].{name}": to(
            ROUTE, {"enabled": True, "parentRefs": [{**GATEWAY, name: value}]}, **{ROUTE: ROUTED}
        )
        for name, value in (("name", "other"), ("namespace", "infra"), ("sectionName", "https"), ("port", 443))
    },
    "gateway.httpRoute.hostnames": to(ROUTE, {**ROUTED, "hostnames": ["llama.example"]}, **{ROUTE: ROUTED}),
    "podTemplate.spec": to("podTemplate.spec", {"nodeSelector": {"pool": "a"}}),
}  # fmt: skip


def observed_effect(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Effect | None:
    """What the change did, read from the manifests alone; None when it did something that has no name."""
    changed = {kind for kind in {*before, *after} if digest(before.get(kind, {})) != digest(after.get(kind, {}))}
    if changed == {"ConfigMap"}:
        return Effect.HOT
    if changed and changed <= {*BY_KIND, "Service"}:
        return Effect.BESIDE
    if changed == {"Deployment", "LeaderWorkerSet"}:
        return Effect.ROLLED
    if changed != {"Deployment"}:
        return None
    one, other = before["Deployment"]["spec"], after["Deployment"]["spec"]
    different = {name for name in one if one[name] != other[name]}
    if "template" in different:
        return Effect.ROLLED
    if different and different <= {"strategy", "minReadySeconds"}:
        return Effect.NEXT_ROLLOUT
    return Effect.SCALED if different == {"replicas"} else None


def test_every_field_of_the_schema_is_changed_here() -> None:
    assert CHANGES.keys() == FIELDS.keys()


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_does_what_the_table_says(path: str) -> None:
    before, after = resource(CHANGES[path].before), resource(CHANGES[path].after)
    assert problems(before) == problems(after) == []
    assert observed_effect(manifests(before), manifests(after)) is FIELDS[path]


@pytest.mark.parametrize("path", CHANGES)
def test_the_envelope_is_what_rolls(path: str) -> None:
    """A field that rolls pods and is not in the envelope would never reach a pod that has a history."""
    one, other = (envelope_hash(envelope(resource(c).spec)) for c in (CHANGES[path].before, CHANGES[path].after))
    assert (one != other) is (FIELDS[path] is Effect.ROLLED)


def test_the_page_is_up_to_date() -> None:
    assert TARGET.read_text() == render(), "run python -m tools.generate_fields"
