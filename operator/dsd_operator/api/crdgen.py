"""Write the CustomResourceDefinition from the models: `python -m dsd_operator.api.crdgen > crds/dsddeployments.yaml`.

Pydantic makes the JSON schema; here it becomes a structural schema: references are resolved, and what OpenAPI v3.0 in
Kubernetes spells differently or does not know is rewritten. `--check FILE` compares instead, and fails on drift.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from dsd_operator.api import constants
from dsd_operator.api.common import MAX_INT32
from dsd_operator.api.spec import Spec
from dsd_operator.api.status import Status

_DROPPED: Final = ("title", "additionalProperties", "default", "$ref", "anyOf", "exclusiveMinimum")
"""Keys of JSON schema that are rewritten below or mean nothing to Kubernetes."""

_COLUMNS: Final = (
    # name, type, JSON path, priority (1: shown with -o wide only), description
    ("Model", "string", ".spec.model.name", 0, "Model that is served"),
    ("Method", "string", ".spec.drafter.method", 0, "Speculative decoding method"),
    ("MaxK", "integer", ".spec.drafter.numSpeculativeTokens", 0, "Largest K the engines can use"),
    ("Ready", "string", ".status.ready", 0, "Pods that serve / pods wanted"),
    ("Schedule", "string", ".status.schedule.applied", 0, "Pods that use the schedule / pods that can serve"),
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', 1, "Why Ready is what it is"),
    ("URL", "string", ".status.url", 1, "Where clients reach the engines inside the cluster"),
    ("Age", "date", ".metadata.creationTimestamp", 0, ""),
)


def crd() -> dict[str, Any]:
    """The whole CustomResourceDefinition."""
    names = {
        "kind": constants.KIND,
        "listKind": f"{constants.KIND}List",
        "plural": constants.PLURAL,
        "singular": constants.SINGULAR,
        "shortNames": list(constants.SHORT_NAMES),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{constants.PLURAL}.{constants.GROUP}"},
        "spec": {"group": constants.GROUP, "names": names, "scope": "Namespaced", "versions": [_version()]},
    }


def render() -> str:
    """The CRD as the text of crds/dsddeployments.yaml."""
    header = "# Generated from operator/dsd_operator/api by `make crds`; do not edit.\n"
    return header + yaml.safe_dump(crd(), sort_keys=False, width=120, allow_unicode=True)


def _version() -> dict[str, Any]:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {
        "name": constants.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root()},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
    }


def _column(name: str, kind: str, path: str, priority: int, description: str) -> dict[str, Any]:
    optional = {"description": description} if description else {}
    return {"name": name, "type": kind, "jsonPath": path, **({"priority": priority} if priority else {}), **optional}


def _root() -> dict[str, Any]:
    return {
        "type": "object",
        "description": (
            "A model served by vLLM with dynamic speculative decoding: how many tokens are drafted (K) depends on the "
            "batch size, by a schedule that changes in place, without a restart."
        ),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {constants.API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {constants.KIND}."},
            "metadata": {"type": "object"},
            "spec": structural(Spec),
            "status": structural(Status),
        },
    }


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """The structural schema of one model."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}))


def _convert(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """One level; pydantic puts what a field says beside a `$ref`, so the field wins over the model it refers to."""
    merged = _resolved(schema, defs)
    result = {k: v for k, v in merged.items() if k not in _DROPPED and k != "$defs"}
    result |= _kept_unions(merged) | _default(merged) | _integer_format(merged)
    if "exclusiveMinimum" in merged:
        result |= {"minimum": merged["exclusiveMinimum"], "exclusiveMinimum": True}
    if "properties" in merged:
        result["properties"] = {name: _convert(s, defs) for name, s in merged["properties"].items()}
    if isinstance(merged.get("items"), dict):
        result["items"] = _convert(merged["items"], defs)
    if isinstance(merged.get("additionalProperties"), dict):
        result["additionalProperties"] = _convert(merged["additionalProperties"], defs)
    return dict(sorted(result.items(), key=_order))


def _resolved(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """`$ref` and `X | None` replaced by what they mean: a field that may be null is a field that may be left out."""
    union = [s for s in schema.get("anyOf", ()) if s.get("type") != "null"]
    inner: dict[str, Any] = {}
    if len(union) == 1:
        inner = _resolved(union[0], defs)
    elif "$ref" in schema:
        inner = _resolved(defs[schema["$ref"].rpartition("/")[2]], defs)
    return inner | {k: v for k, v in schema.items() if k != "$ref" and not (k == "anyOf" and len(union) == 1)}


def _kept_unions(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": schema["anyOf"]} if schema.get("x-kubernetes-int-or-string") else {}


def _default(schema: dict[str, Any]) -> dict[str, Any]:
    """Scalars, and objects filled in as a whole (`defaults_of`): the API server goes into what is there only."""
    default = schema.get("default")
    return {"default": default} if isinstance(default, int | str | dict) else {}


def _integer_format(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "integer":
        return {}
    return {"format": "int32" if schema.get("maximum", 2**53) <= MAX_INT32 else "int64"}


_ORDER: Final = ("description", "type", "format", "default", "enum", "required", "properties", "items")


def _order(entry: tuple[str, Any]) -> tuple[int, str]:
    key = entry[0]
    return (_ORDER.index(key), "") if key in _ORDER else (len(_ORDER), key)


def main() -> int:
    """Print the CRD, or with --check compare it with a file; 1 when they differ."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--check", metavar="FILE", type=Path, help="compare with FILE instead of printing")
    path: Path | None = arguments.parse_args().check
    if path is None:
        sys.stdout.write(render())
    elif path.read_text() != render():
        print(f"{path} does not fit the models any more; run `make crds`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
