"""KServe's LLMInferenceService: the preset that it runs when nothing else is said, with what the object adds."""

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dsd.convert.forms import unread
from kubectl_dsd.convert.forms.loose import mapping, mappings, name
from kubectl_dsd.convert.forms.pods import PodReader
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import words_of
from kubectl_dsd.convert.variables import Variables

Json = Mapping[str, Any]

ADDITIONAL: Final = "VLLM_ADDITIONAL_ARGS"
_MAIN: Final = "main"
_SEVERAL: Final = "one pod is one engine here: pods of different roles, or over several nodes, are not supported"
_ONE: Final = ("pipeline", "data", "dataLocal", "expert")


def read(body: Json, variables: Variables, select: str | None) -> Launch | None:
    """The engine; None where there is a problem, which was told."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    model = mapping(spec.get("model"))
    launch = Launch("kubernetes", [], name=name(metadata.get("name")), namespace=name(metadata.get("namespace")))
    launch.replicas = spec["replicas"] if isinstance(spec.get("replicas"), int) else None
    served = str(model.get("name") or metadata.get("name") or "")
    preset = [str(model["uri"])] if model.get("uri") else []
    preset += ["--served-model-name", served] if served else []
    preset += _parallel(mapping(spec.get("parallelism")), variables.report)
    _judge(spec, model, variables.report)
    template = mapping(spec.get("template")) or {"containers": [{"name": _MAIN}]}
    if PodReader(launch, variables).read({"spec": template}, select or _only_main(template)) is None:
        return None
    _arguments(launch, preset, variables)
    if launch.image is None:
        variables.report.note("image", "of KServe's preset; the operator's image is used")
    return launch


def _only_main(template: Json) -> str | None:
    names = [c.get("name") for c in mappings(template.get("containers"))]
    return _MAIN if _MAIN in names else None


def _arguments(launch: Launch, preset: list[str], variables: Variables) -> None:
    """KServe hands the variable to a shell, so its words are a shell's; what the container says comes after."""
    more = [v for v in launch.env if v.name == ADDITIONAL]
    launch.env = [v for v in launch.env if v.name != ADDITIONAL]
    words = words_of(variables.get(ADDITIONAL) or "", variables) if more else []
    if any(v.source for v in more) and ADDITIONAL not in variables.wanted:
        variables.report.problem(
            f"env {ADDITIONAL}", f"its value is not in the object; give it with --set {ADDITIONAL}=VALUE"
        )
    own = launch.arguments
    if own and not own[0].startswith("-"):
        preset = preset[1:] if preset and not preset[0].startswith("--") else preset
        own = ["--model", *own]
    launch.arguments = [*preset, *words, *own]


def _parallel(parallelism: Json, report: Report) -> list[str]:
    for key in _ONE:
        if parallelism.get(key) not in (None, 1, False):
            report.problem(f"spec.parallelism.{key}", _SEVERAL)
    size = parallelism.get("tensor")
    return ["--tensor-parallel-size", str(size)] if size else []


_READ: Final = ("model", "replicas", "parallelism", "template", "worker", "prefill", "baseRefs", "router")


def _judge(spec: Json, model: Json, report: Report) -> None:
    unread.tell(spec, _READ, "spec", report)
    unread.tell(model, ("uri", "name", "lora"), "spec.model", report)
    unread.tell(mapping(spec.get("parallelism")), (*_ONE, "tensor", "dataRPCPort"), "spec.parallelism", report)
    for key in ("worker", "prefill"):
        if spec.get(key):
            report.problem(f"spec.{key}", _SEVERAL)
    if spec.get("baseRefs"):
        report.lose("spec.baseRefs", "what the referenced configurations add is not in this object; copy it here first")
    if mapping(model.get("lora")).get("adapters"):
        report.lose(
            "spec.model.lora", "adapters are not carried over; add --enable-lora and --lora-modules to extraArgs"
        )
    if spec.get("router"):
        report.lose(
            "spec.router", "route, gateway and scheduler are not carried over; lead them to the operator's Service"
        )
