"""Values of Helm charts, and any other YAML that holds a command of vLLM somewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dsd_runtime.options import SPELLINGS
from kubectl_dsd.convert.forms import production_stack
from kubectl_dsd.convert.forms.loose import mapping, mappings, words
from kubectl_dsd.convert.forms.pods import PodReader
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.shell import words_of
from kubectl_dsd.convert.variables import Variables

Json = Mapping[str, Any]

_LISTS: Final = ("command", "args", "extraArgs", "cmd")


def read(source: Input, variables: Variables, select: str | None) -> Launch | None:
    """The one place that holds a command; None where there is a problem, which was told."""
    stack = [mapping(document.get("servingEngineSpec")) for document in mappings(source.data)]
    models = [(entry, serving) for serving in stack for entry in mappings(serving.get("modelSpec"))]
    if models:
        return _production_stack(models, variables, select)
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
    variables.report.note(path or "values", "a command of vLLM is here; what the chart itself adds is not known")
    return PodReader(launch, variables).read({"spec": {"containers": [_container(values, variables)]}}, None)


def _production_stack(models: Sequence[tuple[Json, Json]], variables: Variables, select: str | None) -> Launch | None:
    chosen = [pair for pair in models if select in (None, pair[0].get("name"))]
    if len(chosen) != 1:
        names = ", ".join(str(entry.get("name")) for entry, _ in models)
        variables.report.problem("modelSpec", f"which one? Choose with --select NAME; there are: {names}")
        return None
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


def _container(values: Json, variables: Variables) -> dict[str, Any]:
    """The values in the shape of a container, as far as their names are those of one."""
    given = [word for key in ("args", "extraArgs", "cmd") for word in _words(values.get(key), variables)]
    model = values.get("model") or values.get("modelURL")
    if isinstance(model, str) and not any(word.startswith("--model") for word in given):
        given = [model, *given]
    image = values.get("image")
    if isinstance(image, Mapping):
        image = f"{image.get('repository', '')}:{image.get('tag', '')}".strip(":") or None
    found = {"name": "vllm", "args": given, "command": _words(values.get("command"), variables), "image": image}
    return found | {key: values[key] for key in ("env", "resources", "envFrom") if values.get(key)}


def _words(value: Any, variables: Variables) -> list[str]:
    return words_of(value, variables) if isinstance(value, str) else words(value)
