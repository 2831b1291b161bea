"""What the CRD's schema knows of a field: where it is in a spec, which values it refuses, which others it takes."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from dsd_operator.api.crdgen import crd

Json = dict[str, Any]
Schema = Mapping[str, Any]

SPEC: Final[Schema] = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

MISSING: Final = object()
"""As a value: the field is left out."""

_OTHER_TYPES: Final[Mapping[str, Json]] = {
    "boolean": {"quoted": "true", "a number": 1},
    "object": {"a list": ["x"], "text": "x"},
}
_MANY: Final = 2**31 - 1
_LONGEST: Final = 5000
"""Characters or items: what a schema allows above it is not tried."""


def schema_of(path: str) -> Schema:
    """The schema at a path of `tools.generate_fields`, such as `engine.env[].name`."""
    found = SPEC
    for name in path.split("."):
        found = found["properties"][name.removesuffix("[]")]
        if name.endswith("[]"):
            found = found["items"]
    return found


def get(spec: Mapping[str, Any], path: str) -> Any:
    """The value at a path, of a list's first item; MISSING where there is none."""
    found: Any = spec
    for name in path.split("."):
        if not isinstance(found, Mapping) or name.removesuffix("[]") not in found:
            return MISSING
        found = found[name.removesuffix("[]")]
        if name.endswith("[]"):
            if not found:
                return MISSING
            found = found[0]
    return found


def effective(spec: Mapping[str, Any], path: str) -> Any:
    """The value that counts: the whole list where the path leads into one, the default where there is none, None where
    what there is is empty."""
    value = get(spec, path.partition("[]")[0])
    if value is MISSING or value in (None, [], {}, [{}]):
        return schema_of(path).get("default") if "[]" not in path else None
    return value


def put(spec: Mapping[str, Any], path: str, value: Any) -> Json:
    """A copy with another value at a path, or without it (MISSING)."""
    made: Json = deepcopy(dict(spec))
    place: Any = made
    *parents, last = path.split(".")
    for name in parents:
        plain = name.removesuffix("[]")
        place[plain] = place.get(plain) or ([{}] if name.endswith("[]") else {})
        place = place[plain][0] if name.endswith("[]") else place[plain]
    if value is MISSING:
        place.pop(last, None)
    else:
        place[last] = value
    return made


def objects() -> Iterator[str]:
    """Every path of the spec at which an object with fields of its own stands."""
    yield from _objects(SPEC, "")


def _objects(schema: Schema, path: str) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        if child.get("properties"):
            place = f"{path}.{name}".removeprefix(".")
            yield place
            yield from _objects(child, place)


def others(schema: Schema, value: Any) -> list[Any]:
    """Further values that the schema alone can tell: the rest of an enum, the other truth, the edges of a range."""
    if "enum" in schema:
        return [item for item in schema["enum"] if item != value]
    if schema.get("type") == "boolean":
        return [not value]
    if schema.get("type") == "integer":
        edges = {schema.get("minimum", 0), schema.get("maximum", value + 1), value + 1}
        return sorted(edges - {value, _MANY})
    return []


def refused(schema: Schema) -> dict[str, Any]:
    """Values that no server may take, by what is wrong with them."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return {"a list": [1], "true": True}
    if "enum" in schema:
        return {"not in the enum": "Nonsense", "a number": 7}
    found = {"string": _strings, "integer": _numbers, "number": _numbers, "array": _arrays}.get(str(kind))
    if found is not None:
        return found(schema)
    return dict(_OTHER_TYPES.get(str(kind), {}))


def _strings(schema: Schema) -> dict[str, Any]:
    bad: dict[str, Any] = {"a number": 7, "a list": ["x"], "true": True}
    if schema.get("minLength"):
        bad["empty"] = ""
    if schema.get("maxLength", _LONGEST) < _LONGEST:
        bad["too long"] = "x" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        bad["another pattern"] = "?! "
    return bad


def _numbers(schema: Schema) -> dict[str, Any]:
    bad: dict[str, Any] = {"text": "many", "a list": [1]}
    if schema["type"] == "integer":
        bad["a fraction"] = 1.5
    if "minimum" in schema:
        bad["too small"] = schema["minimum"] - 1
    if "maximum" in schema:
        bad["too large"] = schema["maximum"] + 1
    return bad


def _arrays(schema: Schema) -> dict[str, Any]:
    bad: dict[str, Any] = {"an object": {"x": 1}, "a number": 7, "a list of lists": [[["x"]]]}
    if schema.get("minItems") and schema.get("x-kubernetes-list-type") == "atomic":
        bad["empty"] = []  # applied to a set or a map it takes out every item, and the field with the last one
    return bad
