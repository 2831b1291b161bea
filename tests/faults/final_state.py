"""What two runs must agree on in the end: the children, whose fields are whose, and the status.

Names of namespaces and pods, uids, times, addresses and revisions are left out. Generations are not: a child that was
changed once more than need be counts as a difference.
"""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dsd_operator.cluster import resources
from dsd_operator.cluster.client import FIELD_MANAGER, STATUS_FIELD_MANAGER
from dsd_operator.render.config_map import read
from dsd_runtime.protocol import CONFIG_FILE_NAME
from tools.testbed.kube import Json

if TYPE_CHECKING:
    from tests.faults.stage import Stage

_OF_THE_SERVER: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields"})
_GIVEN: Final = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_NUMBER: Final = re.compile(r"revision \d+")

KINDS: Final = (*resources.APPLIED, resources.LEADER_WORKER_SET, *resources.EXTRA)
_WORKLOADS: Final = frozenset({resources.DEPLOYMENT.kind, resources.LEADER_WORKER_SET.kind})


def of(stage: "Stage") -> Mapping[str, Any]:
    """By kind: what is there under the children's names, made comparable."""
    found = {kind.kind: _child(stage, child) for kind in KINDS if (child := stage.look(kind)) is not None}
    history = sorted(json.dumps(_child(stage, stored)["data"], sort_keys=True) for stored in stage.stored_templates())
    return {**found, "history": history, "status": _text(stage, stage.status()), "pods": len(stage.pods())}


def differences(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Where two states differ, one line for each place."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        keys = sorted(wanted.keys() | found.keys())
        return [line for key in keys for line in differences(wanted.get(key), found.get(key), f"{where}/{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [line for number, pair in pairs for line in differences(*pair, f"{where}/{number}")]
    return [] if wanted == found else [f"{where}: wanted {_short(wanted)}, found {_short(found)}"]


def _child(stage: "Stage", child: Json) -> Any:
    left_out = _OF_THE_SERVER | ({"generation"} if stage.moves and child["kind"] in _WORKLOADS else set())
    meta = {name: value for name, value in child["metadata"].items() if name not in left_out}
    body = {name: value for name, value in child.items() if name not in ("metadata", "status")}
    if child["kind"] == "ConfigMap" and (file := read(child)) is not None:
        body["data"] = {CONFIG_FILE_NAME: file.model_copy(update={"revision": None}).dump()}
    return _text(stage, {**_without(body, _GIVEN), "metadata": meta, "owned": _owned(child)})


def _owned(child: Json) -> list[Any]:
    """The fields that are the operator's: an apply that was lost or doubled must not leave others."""
    entries = child["metadata"].get("managedFields") or ()
    ours = (FIELD_MANAGER, STATUS_FIELD_MANAGER)
    return [[e["manager"], e["operation"], e["fieldsV1"]] for e in entries if e["manager"] in ours]


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(item, names) for name, item in value.items() if name not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def _text(stage: "Stage", value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    for number, name in enumerate(sorted(stage.names.values())):
        text = text.replace(name, f"pod-{number}")
    text = text.replace(stage.namespace, "here")
    for pattern, name in ((_UID, "uid"), (_TIME, "time"), (_NUMBER, "revision")):
        text = pattern.sub(name, text)
    return json.loads(text)


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 300 else f"{text[:300]} …"
