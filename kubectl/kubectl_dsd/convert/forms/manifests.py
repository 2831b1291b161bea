"""Kubernetes manifests: workloads, and the kinds of other operators that run vLLM."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dsd_operator.api.constants import KIND
from kubectl_dsd.convert.forms import kserve, production_stack
from kubectl_dsd.convert.forms.loose import mapping, name
from kubectl_dsd.convert.forms.pods import PodReader
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.variables import Variables

Json = Mapping[str, Any]
Reader = Callable[[Json, Variables, str | None], Launch | None]


def _template(body: Json) -> Json:
    """The pod template of a workload; a Pod is its own."""
    return body if body.get("kind") == "Pod" else mapping(mapping(body.get("spec")).get("template"))


def _workload(body: Json, variables: Variables, select: str | None) -> Launch | None:
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    launch = Launch("kubernetes", [], name=name(metadata.get("name")), namespace=name(metadata.get("namespace")))
    if isinstance(spec.get("replicas"), int) and body.get("kind") != "Pod":
        launch.replicas = spec["replicas"]
    if body.get("kind") == "DaemonSet":
        variables.report.note(
            "replicas", "a DaemonSet runs one engine on every node that it matches; here it is 1, set spec.replicas"
        )
    _rollout(spec, launch, variables)
    _unread(spec, body, variables)
    if body.get("kind") == "StatefulSet" and spec.get("volumeClaimTemplates"):
        variables.report.lose(
            "spec.volumeClaimTemplates", "pods have no claims of their own; make one claim and mount it by podTemplate"
        )
    if PodReader(launch, variables).read(_template(body), select) is None:
        return None
    _note_name(body, launch, variables)
    return launch


def _rollout(spec: Json, launch: Launch, variables: Variables) -> None:
    strategy = mapping(mapping(spec.get("strategy")).get("rollingUpdate"))
    numbers = {key: strategy[key] for key in ("maxSurge", "maxUnavailable") if key in strategy}
    if numbers and all(isinstance(value, int) for value in numbers.values()):
        launch.spec["rollout"] = numbers
    elif numbers:
        variables.report.note("strategy", "a percentage; left out, one pod at a time is replaced (spec.rollout)")


_ROLLS: Final = "left out: the operator replaces pods by its own rules (spec.rollout)"
_READ: Final = (
    *("replicas", "template", "selector", "strategy", "updateStrategy", "volumeClaimTemplates", "serviceName"),
    *("revisionHistoryLimit", "progressDeadlineSeconds", "minReadySeconds"),
)


def _unread(spec: Json, body: Json, variables: Variables) -> None:
    """Fields of the workload, not of its pods, that have no counterpart."""
    if body.get("kind") == "Pod":
        return
    note = variables.report.note
    for key in ("strategy", "updateStrategy"):
        if (kind := mapping(spec.get(key)).get("type")) not in (None, "RollingUpdate"):
            note(
                f"{key}.type",
                f"{kind} is left out: the operator starts new pods before it ends old ones; where there are no spare "
                "GPUs for that, set spec.rollout.maxSurge 0 and maxUnavailable 1",
            )
    if spec.get("minReadySeconds"):
        note("minReadySeconds", _ROLLS)
    for key, value in spec.items():
        if key not in _READ and value not in (None, {}, [], False):
            note(f"spec.{key}", f"left out: it means something for a {body.get('kind')} only")


def _note_name(body: Json, launch: Launch, variables: Variables) -> None:
    variables.report.note(
        "metadata.name",
        f"the operator makes a Deployment, a Service and a ServiceAccount called {launch.name}. Where the old "
        f"{body.get('kind')} or its Service has that name, remove it first, or choose another name with --name",
    )


def _group(body: Json, variables: Variables, _: str | None) -> None:
    variables.report.problem(
        str(body.get("kind")),
        "engines over several nodes are not converted; write spec.engine.nodes and tensorParallelSize by hand "
        "(docs/how-to/many-nodes.md)",
    )


def _own(body: Json, variables: Variables, _: str | None) -> None:
    variables.report.problem(str(body.get("kind")), "this is a DSDDeployment already")


_READERS: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "Pod", "ReplicaSet", "Job", "DaemonSet"), _workload),
    "VLLMRuntime": production_stack.read_runtime,
    "LLMInferenceService": kserve.read,
    **dict.fromkeys(("LeaderWorkerSet", "RayService", "RayCluster", "RayJob"), _group),
    KIND: _own,
}


def read(source: Input, variables: Variables, select: str | None) -> Launch | None:
    """The one object that runs vLLM; None where there is a problem, which was told."""
    bodies = [body for document in source.data for body in _unfolded(document)]
    found = [body for body in bodies if str(body.get("kind")) in _READERS]
    names = [f"{body['kind']} {mapping(body.get('metadata')).get('name')}" for body in found]
    if select is not None and len(found) > 1:
        chosen = [body for body in found if mapping(body.get("metadata")).get("name") == select]
        found, select = chosen, None
    if not found:
        kinds = ", ".join(sorted({str(body.get("kind")) for body in bodies})) or "nothing"
        known = ", ".join(kind for kind in _READERS if kind != KIND)
        variables.report.problem("kind", f"there is {kinds} here; what can be converted: {known}")
        return None
    if len(found) > 1:
        variables.report.problem("", f"which one runs vLLM? Choose with --select NAME; there are: {', '.join(names)}")
        return None
    return _READERS[str(found[0]["kind"])](found[0], variables, select)


def _unfolded(document: Any) -> list[Json]:
    """The objects of a document, which may be a List or a list."""
    if isinstance(document, list):
        return [body for item in document for body in _unfolded(item)]
    if not isinstance(document, Mapping):
        return []
    return _unfolded(document.get("items")) if str(document.get("kind", "")).endswith("List") else [document]
