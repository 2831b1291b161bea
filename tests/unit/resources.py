"""Resources for the tests of render and status: one small valid body, and ways to change it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from dsd_operator.api import DSDDeployment, parse
from dsd_operator.render.context import RenderContext
from dsd_operator.render.plan import plan
from dsd_runtime.protocol import Revision

BASE: Final[dict[str, Any]] = {
    "apiVersion": "dsd-operator.io/v1alpha1",
    "kind": "DSDDeployment",
    "metadata": {"name": "demo", "namespace": "team-a", "uid": "11111111-2222", "generation": 4},
    "spec": {
        "model": {"name": "acme/tiny-llama"},
        "drafter": {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}},
        "schedule": [
            {"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3},
            {"startBatchSize": 9, "endBatchSize": 256, "numSpeculativeTokens": 1},
        ],
    },
}

CONTEXT: Final = RenderContext(runtime_image="registry.local/dsd-runtime:1", revision=Revision(owner="o", number=7))


def body(changes: Mapping[str, Any] | None = None, name: str = "demo") -> dict[str, Any]:
    """BASE with `changes` to its spec; a dotted key reaches inside: `{"engine.maxNumSeqs": 8}`."""
    made = deepcopy(BASE)
    made["metadata"]["name"] = name
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        place = made["spec"]
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return made


def resource(
    changes: Mapping[str, Any] | None = None, name: str = "demo", status: Mapping[str, Any] | None = None
) -> DSDDeployment:
    """The parsed resource, with `status` as what is stored."""
    return parse({**body(changes, name), "status": dict(status or {})})


def manifests(made: DSDDeployment) -> dict[str, dict[str, Any]]:
    """Its children by kind."""
    return {manifest["kind"]: manifest for manifest in plan(made, CONTEXT)}


def pod_spec(made: DSDDeployment) -> dict[str, Any]:
    """The pod spec of its Deployment."""
    spec: dict[str, Any] = manifests(made)["Deployment"]["spec"]["template"]["spec"]
    return spec


def engine(made: DSDDeployment) -> dict[str, Any]:
    """The engine container of its Deployment."""
    found: dict[str, Any] = next(c for c in pod_spec(made)["containers"] if c["name"] == "engine")
    return found
