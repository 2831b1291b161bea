"""A deployment with everything left out in which two of the same spec may differ: names, times, numbers that count."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dsd_operator.cluster.client import FIELD_MANAGER
from dsd_operator.render.names import names_for
from dsd_operator.status.reasons import Reason

Json = dict[str, Any]

HISTORY: Final = frozenset({"ControllerRevision"})
"""What is kept of the past is another one after another past."""

FINAL: Final = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.APPLY_FAILED,
        Reason.FOREIGN_OBJECT,
        Reason.API_MISSING,
        Reason.CACHE_NOT_AS_ASKED,
    }
)
"""Of a Ready condition that is False: no more will come."""

_COUNTED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp")
_GIVEN_OUT: Final = ("clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort")
_REVISION: Final = "deployment.kubernetes.io/revision"


@dataclass(frozen=True)
class Picture:
    """One resource as it stands."""

    generation: int
    ready: Mapping[str, Any] = field(default_factory=dict)
    """The condition, empty unless all conditions speak of this generation."""
    status: Mapping[str, Any] = field(default_factory=dict)
    children: Mapping[str, Any] = field(default_factory=dict)
    """By kind and place; those of the past left out."""
    rolls: int = 0
    """How often the Deployment took another template."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """resourceVersions of all of it."""

    @property
    def template(self) -> Any:
        """The Deployment's pod template; None without one."""
        return self.children.get("Deployment", {}).get("spec", {}).get("template")

    @property
    def final(self) -> bool:
        """Whether it stays so."""
        return _is_final(self.ready)

    @property
    def healthy(self) -> bool:
        """Whether all of the spec is in force."""
        return self.ready.get("status") == "True"


def settled(resource: Json) -> bool:
    """Whether a resource's status speaks of its generation, and stays so."""
    return _is_final(_condition(resource))


def picture(resource: Json, children: Sequence[Json]) -> Picture:
    """The picture of a resource, of which `children` are all that name it as their owner."""
    meta = resource["metadata"]
    found = {child["kind"]: child for child in children if child["kind"] not in HISTORY}
    deployment = found.get("Deployment", {}).get("metadata", {})
    return Picture(
        generation=meta["generation"],
        ready=_ready(resource),
        status=_anonymous(_status(resource), meta),
        children={kind: _anonymous(_child(child), meta) for kind, child in found.items()},
        rolls=int(deployment.get("annotations", {}).get(_REVISION, 0)),
        versions={_key(thing): thing["metadata"]["resourceVersion"] for thing in (resource, *children)},
    )


def _key(thing: Json) -> str:
    return f"{thing['kind']} {thing['metadata']['name']}"


def _is_final(ready: Mapping[str, Any]) -> bool:
    return ready.get("status") == "True" or ready.get("reason") in FINAL


def _ready(resource: Json) -> Json:
    found = _condition(resource)
    kept = {name: found[name] for name in ("status", "reason", "message")} if found else {}
    return dict(_anonymous(kept, resource["metadata"]))


def _condition(resource: Json) -> Json:
    """The condition Ready, empty unless all of them speak of this generation."""
    conditions, generation = (resource.get("status") or {}).get("conditions", []), resource["metadata"]["generation"]
    if any(condition["observedGeneration"] != generation for condition in conditions):
        return {}
    found: Json = next((condition for condition in conditions if condition["type"] == "Ready"), {})
    return found


def _status(resource: Json) -> Json:
    status = resource.get("status") or {}
    left = {name: value for name, value in status.items() if name not in ("observedGeneration", "conditions")}
    conditions = [
        {name: condition[name] for name in ("type", "status", "reason", "message")}
        for condition in status.get("conditions", [])
    ]
    schedule = {k: v for k, v in status.get("schedule", {}).items() if k != "observedGeneration"}
    return {**left, "conditions": conditions, "schedule": schedule}


def _child(child: Json) -> Json:
    made = {name: value for name, value in child.items() if name not in ("status", "metadata")}
    made["metadata"] = {name: value for name, value in child["metadata"].items() if name not in _COUNTED}
    made["metadata"]["managedFields"] = [
        entry["fieldsV1"]
        for entry in child["metadata"].get("managedFields", [])
        if (entry["manager"], entry["operation"]) == (FIELD_MANAGER, "Apply")
    ]
    annotations = made["metadata"].get("annotations", {})
    made["metadata"]["annotations"] = {name: text for name, text in annotations.items() if name != _REVISION}
    if child["kind"] == "Service":
        made["spec"] = _without_given_out(made["spec"])
    if child["kind"] == "ConfigMap":
        made["data"] = {name: _without_number(json.loads(text)) for name, text in made["data"].items()}
    return made


def _without_given_out(spec: Json) -> Json:
    """That there is an address or a port counts, not which."""
    made = {name: bool(value) if name in _GIVEN_OUT else value for name, value in spec.items()}
    ports = [{n: bool(v) if n in _GIVEN_OUT else v for n, v in port.items()} for port in spec.get("ports", [])]
    return made | {"ports": ports}


def _without_number(config: Json) -> Json:
    revision = {name: value for name, value in config.get("revision", {}).items() if name != "number"}
    return {**config, "revision": revision}


def _anonymous(value: Any, meta: Json) -> Any:
    """Without the resource's name, its children's and its uid, wherever they stand."""
    text = json.dumps(value).replace(meta["uid"], "UID")
    words = {word: name for name, word in asdict(names_for(meta["name"])).items()} | {meta["name"]: "NAME"}
    for word in sorted(words, key=len, reverse=True):  # one may begin with another
        text = text.replace(word, words[word])
    return json.loads(text)


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two pictures differ, a line each."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in sorted({*one, *other}):
            yield from differences(one.get(name), other.get(name), f"{path}.{name}".removeprefix("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{path}[{place}]")
    elif one != other:
        yield f"{path}: {_short(one)} is not {_short(other)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 300 else f"{text[:300]}..."
