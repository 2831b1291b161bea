"""A service of a compose file."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kubectl_dsd.convert.forms import compose_deploy, programs, storage
from kubectl_dsd.convert.forms.docker import quantity
from kubectl_dsd.convert.forms.items import split_items
from kubectl_dsd.convert.forms.loose import items, mapping, scalar
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch, Variable
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import words_of
from kubectl_dsd.convert.variables import REFERENCE, Variables

_SHORT: Final = re.compile(r"(?<![\w-])-sc\b")
_DOLLAR: Final = "\x01"
_SILENT: Final = (
    *("image", "command", "entrypoint", "environment", "ports", "expose", "restart", "container_name", "hostname"),
    *(
        "healthcheck",
        "depends_on",
        "networks",
        "labels",
        "logging",
        "profiles",
        "stdin_open",
        "tty",
        "platform",
        "pull_policy",
    ),
    *(
        "deploy",
        "volumes",
        "shm_size",
        "ipc",
        "mem_limit",
        "cpus",
        "runtime",
        "gpus",
        "build",
        "stop_grace_period",
        "init",
    ),
    *("tmpfs", "ulimits", "network_mode", "annotations", "stop_signal", "scale"),
)


def read(source: Input, variables: Variables, select: str | None) -> Launch | None:
    """The engine among the services; None where there is a problem, which was told."""
    services = {
        str(name): _filled(service, variables)
        for document in source.data
        if isinstance(document, Mapping)
        for name, service in mapping(document.get("services")).items()
        if isinstance(service, Mapping)
    }
    found = {name: s for name, s in services.items() if _is_engine(s)} if select is None else services
    if select is not None:
        found = {name: service for name, service in found.items() if name == select}
    if len(found) != 1:
        names = ", ".join(found or services) or "none"
        variables.report.problem("services", f"which one runs vLLM? Choose with --select NAME; there are: {names}")
        return None
    ((name, service),) = found.items()
    return _launch(name, service, variables)


def _filled(value: Any, variables: Variables) -> Any:
    """`value` with compose's own references filled in, and `$$` as the dollar that a container sees."""
    if isinstance(value, str):
        filled = REFERENCE.sub(variables.fill, value.replace("$$", _DOLLAR))
        return filled.replace(_DOLLAR, "$")
    if isinstance(value, Mapping):
        return {key: _filled(item, variables) for key, item in value.items()}
    return [_filled(item, variables) for item in value] if isinstance(value, list) else value


def _is_engine(service: Mapping[str, Any]) -> bool:
    text = f"{service.get('image', '')} {service.get('command', '')} {service.get('entrypoint', '')}"
    return "vllm" in text.lower() or "--speculative" in text or "--spec-" in text or bool(_SHORT.search(text))


def _launch(name: str, service: Mapping[str, Any], variables: Variables) -> Launch | None:
    report = variables.report
    launch = Launch("compose", [], name=str(service.get("container_name") or name), image=_image(service))
    launch.env = [Variable(key, value) for key, value in _environment(service.get("environment"))]
    launch.env = [v if v.value is not None else Variable(v.name, variables.get(v.name)) for v in launch.env]
    variables.known |= {v.name: v.value for v in launch.env if v.value is not None}
    words = [*_words(service.get("entrypoint"), variables), *_words(service.get("command"), variables)]
    if text := programs.foreign(words):
        report.problem("", text)
    found = programs.read_words(words, variables)
    launch.arguments = found.arguments if found else words
    launch.env += [Variable(key, value) for key, value in (found.variables if found else {}).items()]
    _surroundings(service, launch, report)
    return launch


def _image(service: Mapping[str, Any]) -> str | None:
    """The image; one that is built here is nobody else's, whatever its name says."""
    image = scalar(service.get("image")) or None
    build = service.get("build")
    if not build:
        return image
    context = scalar(build.get("context") or ".") if isinstance(build, Mapping) else scalar(build)
    return f"build {context}" + (f" ({image})" if image else "")


def _environment(value: Any) -> list[tuple[str, str | None]]:
    if isinstance(value, Mapping):
        return [(str(key), None if item is None else scalar(item)) for key, item in value.items()]
    pairs = [scalar(item).partition("=") for item in items(value)]
    return [(name, text if equals else None) for name, equals, text in pairs]


def _words(value: Any, variables: Variables) -> list[str]:
    """A command as compose takes it: a text is split by a shell's rules, but nothing in it is filled in."""
    if isinstance(value, str):
        words = words_of(value.replace("$", _DOLLAR), Variables(variables.report))
        return [word.replace(_DOLLAR, "$") for word in words]
    return split_items([scalar(item) for item in items(value)], variables.report)


def _surroundings(service: Mapping[str, Any], launch: Launch, report: Report) -> None:
    if size := service.get("shm_size"):
        launch.spec["sharedMemory"] = {"sizeLimit": quantity(str(size))}
    for key, resource in (("mem_limit", "memory"), ("cpus", "cpu")):
        if value := service.get(key):
            launch.resources.setdefault("limits", {})[resource] = (
                quantity(str(value)) if key == "mem_limit" else str(value)
            )
    if service.get("scale") is not None and isinstance(service["scale"], int):
        launch.replicas = service["scale"]
    compose_deploy.read(service, launch, report)
    for mount in items(service.get("volumes")):
        source, target = _mount(mount)
        storage.host_mount(source, target, report)
    if service.get("env_file"):
        report.lose("env_file", "the variables of the file are not carried over; put them under environment")
    for key in service:
        if key not in _SILENT and key != "env_file" and not str(key).startswith("x-"):
            report.lose(f"services.{launch.name}.{key}", "is not carried over; put what it does into spec.podTemplate")


def _mount(mount: Any) -> tuple[str, str]:
    if isinstance(mount, Mapping):
        return str(mount.get("source", "")), str(mount.get("target", ""))
    source, _, rest = str(mount).partition(":")
    return source, rest.partition(":")[0] or source
