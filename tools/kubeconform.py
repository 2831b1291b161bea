"""kubeconform with schemas that need no network: those that an API server publishes, and those of CRDs.

The API server's OpenAPI document describes exactly the version that the tests run, our own CRD included once it is
installed. kubeconform wants one JSON schema a file; `write` makes them, closed against unknown fields.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.cluster.api import program

Schema = Mapping[str, Any]

_REFERENCE: Final = "#/definitions/"
_LOCATION: Final = "{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json"
_QUANTITY: Final = ".resource.Quantity"
_NUMBER_OR_TEXT: Final = {"type": ["number", "string"]}
_SECONDS: Final = 120


def write(openapi: Schema, folder: Path) -> None:
    """One file for each kind of an OpenAPI v2 document (`/openapi/v2`)."""
    definitions = {name: _closed(name, schema) for name, schema in openapi["definitions"].items()}
    for name, schema in openapi["definitions"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            needed = {one: definitions[one] for one in _needed(name, definitions)}
            whole = {"$ref": _REFERENCE + name, "definitions": needed}
            _write(folder, kind["group"], kind["version"], kind["kind"], whole)


def write_crd(crd: Schema, folder: Path) -> None:
    """One file for each version of a CRD."""
    spec = crd["spec"]
    for version in spec["versions"]:
        schema = _closed("", version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}  # the API server's own, which a CRD may not describe
        _write(folder, spec["group"], version["name"], spec["names"]["kind"], schema)


def problems(manifests: str, folder: Path) -> list[str]:
    """What is wrong with these manifests (YAML documents); a kind without a schema is a problem, too."""
    options = ["-strict", "-output", "json", "-schema-location", f"{folder}/{_LOCATION}"]
    command: list[str | Path] = [program("kubeconform"), *options, "-"]
    done = subprocess.run(command, input=manifests, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if not done.stdout:
        raise RuntimeError(f"kubeconform: {done.stderr.strip()}")
    found = json.loads(done.stdout)["resources"] or ()
    return [f"{one['kind']} {one['name']}: {one['status']}: {one['msg']}" for one in found]


def _write(folder: Path, group: str, version: str, kind: str, schema: Schema) -> None:
    # For the core group, which has no name, kubeconform takes the version twice.
    (folder / f"{group or version}_{version}_{kind.lower()}.json").write_text(json.dumps(schema))


def _needed(name: str, definitions: Mapping[str, Schema]) -> set[str]:
    """A definition's name, and those of all that it refers to."""
    found, waiting = {name}, [name]
    while waiting:
        new = set(_references(definitions[waiting.pop()])) - found
        found |= new
        waiting += new
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(_REFERENCE)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _closed(name: str, schema: Schema) -> dict[str, Any]:
    """The schema without room for unknown fields, and with Kubernetes' own kinds of scalars in JSON Schema's words."""
    if name.endswith(_QUANTITY) or "x-kubernetes-int-or-string" in schema or schema.get("format") == "int-or-string":
        return dict(_NUMBER_OR_TEXT)
    made = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), Mapping):
            made[key] = _closed("", made[key])
    if "properties" in made:
        made["properties"] = {field: _closed("", below) for field, below in made["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    return made
