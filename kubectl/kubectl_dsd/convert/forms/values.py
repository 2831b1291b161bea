"""Values of Helm charts, and any other YAML that holds a command of vLLM somewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dsd_runtime.options import SPELLINGS
from kubectl_dsd.convert.forms import production_stack, unread
from kubectl_dsd.convert.forms.loose import mapping, mappings, scalar, words
from kubectl_dsd.convert.forms.pods import PodReader
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.shell import words_of
from kubectl_dsd.convert.variables import Variables

Json = Mapping[str, Any]

_NOT_KNOWN: Final = (
    "a command of vLLM is here, and only what stands beside it is read; what the chart itself adds is not known"
)
_OF_POD: Final = (
    *("nodeSelector", "tolerations", "affinity", "volumes", "imagePullSecrets", "runtimeClassName"),
    *("priorityClassName", "serviceAccountName", "initContainers", "topologySpreadConstraints"),
)
_OF_CONTAINER: Final = (
    *("resources", "envFrom", "volumeMounts", "securityContext", "lifecycle", "workingDir", "imagePullPolicy"),
    *("livenessProbe", "readinessProbe", "startupProbe"),
)
"""Fields that charts hand on to the pod and its container as they are."""

_READ: Final = ("name", "replicas", "replicaCount", "model", "modelURL", "image", "env")
_SILENT: Final = ("enabled", "port", "ports", "containerPort", "service", "nameOverride", "fullnameOverride")
"""The operator's own: ports, the Service, names."""

_LISTS: Final = ("command", "args", "extraArgs", "cmd")


def read(source: Input, variables: Variables, select: str | None) -> Launch | None:
    """The one place that holds a command; None where there is a problem, which was told."""
    stack = [mapping(document.get("servingEngineSpec")) for document in mappings(source.data)]
    models = [(entry, serving) for serving in stack for entry in mappings(serving.get("modelSpec"))]
    if models:
        return _production_stack(models, mappings(source.data), variables, select)
    found = [place for document in source.data for place in _places(document, "")]
    found = [place for place in found if select in (None, place[0], place[0].rpartition(".")[2])]
    if len(found) != 1:
        names = ", ".join(path or "the file itself" for path, _ in found)
        message = (
            f"which one? Choose with --select PATH; there are: {names}" if found else "no command of vLLM is in this"
        )
        variables.report.problem("", f"{message}. Another form: --from")
        return None
    path, values = found[0]
    launch = Launch("helm", [], name=values.get("name") if isinstance(values.get("name"), str) else None)
    if isinstance(values.get("replicas", values.get("replicaCount")), int):
        launch.replicas = values.get("replicas", values.get("replicaCount"))
    variables.report.note(path or "values", _NOT_KNOWN)
    return PodReader(launch, variables).read({"spec": _pod(values, variables)}, None)


def _production_stack(
    models: Sequence[tuple[Json, Json]], documents: Sequence[Json], variables: Variables, select: str | None
) -> Launch | None:
    chosen = [pair for pair in models if select in (None, pair[0].get("name"))]
    if len(chosen) != 1:
        names = ", ".join(str(entry.get("name")) for entry, _ in models)
        variables.report.problem("modelSpec", f"which one? Choose with --select NAME; there are: {names}")
        return None
    for key in {key: None for document in documents for key in document if key != "servingEngineSpec"}:
        variables.report.note(key, "left out: it is the chart's, beside the engines")
    return production_stack.read_values(*chosen[0], variables)


def _places(value: Any, path: str) -> Iterator[tuple[str, Json]]:
    """Mappings with a list of arguments in which options of vLLM stand."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    if any(_is_command(value.get(key)) for key in _LISTS):
        yield path, value
        return
    for key, item in value.items():
        yield from _places(item, f"{path}.{key}".lstrip("."))


def _is_command(value: Any) -> bool:
    found = value.split() if isinstance(value, str) else words(value)
    names = [
        word.split()[0].partition("=")[0].partition(".")[0].replace("_", "-") for word in found if word.startswith("-")
    ]
    return any(name in SPELLINGS and name.startswith("--") for name in names) or ("vllm" in found and "serve" in found)


def _pod(values: Json, variables: Variables) -> dict[str, Any]:
    """The pod, of which charts hand on some fields as they are; the rest is told."""
    unread.tell(values, (*_READ, *_SILENT, *_LISTS, *_OF_POD, *_OF_CONTAINER), "", variables.report)
    around = {key: values[key] for key in _OF_POD if values.get(key)}
    return {"containers": [_container(values, variables)], **around}


def _container(values: Json, variables: Variables) -> dict[str, Any]:
    """The values in the shape of a container, as far as their names are those of one."""
    given = [word for key in ("args", "extraArgs", "cmd") for word in _words(values.get(key), variables)]
    model = values.get("model") or values.get("modelURL")
    if isinstance(model, str) and not any(word.startswith("--model") for word in given):
        given = [model, *given]
    found = {"name": "vllm", "args": given, "command": _words(values.get("command"), variables)}
    found |= _image(values.get("image"), variables)
    env = values.get("env")
    if isinstance(env, Mapping):
        env = [_variable(str(name), value) for name, value in env.items()]
    found |= {"env": env} if env else {}
    return found | {key: values[key] for key in _OF_CONTAINER if values.get(key)}


def _variable(name: str, value: Any) -> dict[str, Any]:
    """One entry of a mapping of variables; charts let it hold a text or what a Pod's list would."""
    return {"name": name, **value} if isinstance(value, Mapping) else {"name": name, "value": scalar(value)}


def _image(image: Any, variables: Variables) -> dict[str, Any]:
    if not isinstance(image, Mapping):
        return {"image": image}
    unread.tell(mapping(image), ("registry", "repository", "tag", "digest", "pullPolicy"), "image", variables.report)
    name = "/".join(str(image[key]) for key in ("registry", "repository") if image.get(key))
    name += f":{image['tag']}" if image.get("tag") else ""
    name += f"@{image['digest']}" if image.get("digest") else ""
    policy = {"imagePullPolicy": image["pullPolicy"]} if image.get("pullPolicy") else {}
    return {"image": name or None, **policy}


def _words(value: Any, variables: Variables) -> list[str]:
    return words_of(value, variables) if isinstance(value, str) else words(value)
