"""`docker run` and its like: the options before the image are docker's, the words after it the engine's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_dsd.convert.forms import programs, storage
from kubectl_dsd.convert.inputs import CONTAINER_PROGRAMS, Input
from kubectl_dsd.convert.launch import Launch, Variable
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import Splitter
from kubectl_dsd.convert.variables import Variables

_SHORT: Final = {
    "e": "env", "v": "volume", "p": "publish", "m": "memory", "l": "label", "u": "user", "w": "workdir",
    "h": "hostname", "a": "attach", "c": "cpu-shares", "d": "detach", "i": "interactive", "t": "tty",
    "P": "publish-all", "q": "quiet",
}  # fmt: skip
_SWITCHES: Final = (
    *(
        "detach",
        "interactive",
        "tty",
        "rm",
        "init",
        "privileged",
        "publish-all",
        "read-only",
        "no-healthcheck",
        "quiet",
    ),
    *("oom-kill-disable", "disable-content-trust", "sig-proxy", "replace", "tls-verify", "env-host", "http-proxy"),
    *("no-hosts", "read-only-tmpfs", "rmi", "rootfs", "passwd"),
)
"""Options of docker and podman without a value; every other one has one."""

_SILENT: Final = (
    *("detach", "interactive", "tty", "rm", "init", "publish", "publish-all", "restart", "name", "label", "label-file"),
    *("log-driver", "log-opt", "hostname", "quiet", "pull", "platform", "expose", "runtime", "attach", "sig-proxy"),
    *("health-cmd", "health-interval", "health-retries", "health-timeout", "health-start-period", "no-healthcheck"),
    *("stop-timeout", "stop-signal", "replace", "tls-verify", "cidfile", "detach-keys"),
)
"""Options that have no meaning in Kubernetes, or whose part the operator plays: ports, probes, restarts, names."""

_NOTED: Final = {
    "ipc": "left out: /dev/shm of the pod is in memory, which is what vLLM needs it for",
    "network": "left out: the pod has an address of its own, and a Service",
    "net": "left out: the pod has an address of its own, and a Service",
    "ulimit": "left out: the node's runtime sets limits",
    "privileged": "left out: an engine needs no privileges; a device plugin gives it its GPUs",
    "cap-add": "left out: the engine runs without added capabilities; add them in podTemplate if it must have them",
    "security-opt": "left out: the operator's security context holds",
    "read-only": "left out: the engine's root file system is read-only anyway",
}


def read(source: Input, variables: Variables) -> Launch | None:
    """The engine; None where there is a problem, which was told."""
    words = source.words if source.words is not None else _command(source.text, variables)
    if words is None or not {"run", "create"} & set(words):
        variables.report.problem("", "no docker run command is in this")
        return None
    return DockerLine(variables).read(words)


def _command(text: str, variables: Variables) -> list[str] | None:
    commands = Splitter(variables).split(text)
    found = [c.words for c in commands if any(w.rpartition("/")[2] in CONTAINER_PROGRAMS for w in c.words[:2])]
    found = [words for words in found if {"run", "create"} & set(words[:4])]
    if len(found) > 1:
        variables.report.problem("", f"{len(found)} containers are started here; convert them one by one")
    return found[0] if found else None


class DockerLine:
    """Reads one line."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.report: Report = variables.report
        self.launch = Launch("docker", [])
        self.entrypoint: str | None = None
        self._handlers: Mapping[str, Callable[[str], None]] = {
            "env": self._env, "env-file": self._env_file, "gpus": self._gpus, "device": self._device,
            "volume": self._volume, "mount": self._mount, "tmpfs": lambda _: None,
            "shm-size": self._shared_memory, "memory": lambda v: self._limit("memory", quantity(v)),
            "cpus": lambda v: self._limit("cpu", v), "entrypoint": self._entrypoint,
        }  # fmt: skip

    def read(self, words: list[str]) -> Launch | None:
        """The words from `docker` on."""
        start = next(i for i, word in enumerate(words) if word in ("run", "create")) + 1
        position = self._options(words, start)
        if position >= len(words):
            self.report.problem("", "no image is named; which options are docker's and which vLLM's cannot be told")
            return None
        self.launch.image = words[position]
        self.launch.arguments = self._arguments(words[position + 1 :])
        return self.launch

    def _options(self, words: list[str], position: int) -> int:
        """Handle docker's options; the position of the image."""
        while position < len(words) and words[position].startswith("-"):
            name, value, used = self._option(words, position)
            position += used
            self._one(name, value)
        return position

    def _option(self, words: list[str], position: int) -> tuple[str, str, int]:
        """(name, value, words used) of the option at `position`."""
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if equals or name in _SWITCHES:
                return name, value, 1
            return name, following, 2
        letters = word[1:]
        while len(letters) > 1 and _SHORT.get(letters[0], "") in _SWITCHES:
            letters = letters[1:]  # -itd: switches, before one that may have a value
        name = _SHORT.get(letters[0], letters[0])
        if name in _SWITCHES:
            return name, "", 1
        glued = letters[1:].removeprefix("=")
        return (name, glued, 1) if len(letters) > 1 else (name, following, 2)

    def _one(self, name: str, value: str) -> None:
        if name == "name":
            self.launch.name = value
        if handler := self._handlers.get(name):
            handler(value)
        elif message := _NOTED.get(name):
            self.report.note(f"docker --{name}", message)
        elif name not in _SILENT:
            self.report.lose(f"docker --{name}", "is not carried over; put what it does into spec.podTemplate")

    def _env(self, value: str) -> None:
        name, equals, text = value.partition("=")
        known = text if equals else self.variables.get(name)
        self.launch.env.append(Variable(name, known))

    def _env_file(self, _: str) -> None:
        self.report.lose("docker --env-file", "the variables of the file are not carried over; give each with -e")

    def _gpus(self, value: str) -> None:
        text = value.strip("\"'")
        count = next((part.partition("=")[2] for part in text.split(",") if part.startswith("count=")), text)
        if "device=" in text:
            self.launch.devices = len([d for d in text.partition("device=")[2].strip("\"'").split(",") if d])
        elif text == "all" or count in ("all", "-1"):
            self.launch.devices = -1
        elif count.isdigit():
            self.launch.devices = int(count)

    def _device(self, value: str) -> None:
        if value.startswith("nvidia.com/gpu=all"):
            self.launch.devices = -1
        elif value.startswith("nvidia.com/gpu="):
            self.launch.devices = (self.launch.devices or 0) + 1
        else:
            self.report.lose(f"docker --device {value}", "ask for the device in spec.resources.limits instead")

    def _volume(self, value: str) -> None:
        source, _, rest = value.partition(":")
        storage.host_mount(source, rest.partition(":")[0] or source, self.report)

    def _mount(self, value: str) -> None:
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        target = parts.get("target") or parts.get("destination") or parts.get("dst") or ""
        if parts.get("type") != "tmpfs":
            storage.host_mount(parts.get("source") or parts.get("src") or "", target, self.report)

    def _shared_memory(self, value: str) -> None:
        self.launch.spec["sharedMemory"] = {"sizeLimit": quantity(value)}

    def _limit(self, resource: str, value: str) -> None:
        self.report.note(f"docker {resource}", f"{value}, written into spec.resources.limits")
        self.launch.resources.setdefault("limits", {})[resource] = value

    def _entrypoint(self, value: str) -> None:
        self.entrypoint = value

    def _arguments(self, words: list[str]) -> list[str]:
        """The arguments of `vllm serve`; the image's own entry point is that, or the old API server."""
        full = ([self.entrypoint] if self.entrypoint else []) + words
        if text := programs.foreign(full):
            self.report.problem("", text)
        self.variables.known |= {v.name: v.value for v in self.launch.env if v.value is not None}
        found = programs.read_words(full, self.variables)
        if found is None and self.entrypoint:
            self.report.problem("docker --entrypoint", "this starts something else than vLLM")
        self.launch.env += [Variable(name, value) for name, value in (found.variables if found else {}).items()]
        return found.arguments if found else words


def quantity(text: str) -> Any:
    """A size as docker writes it (`16g`, `512mb`, bytes) as a quantity; docker's units are binary."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmgt])?i?b?", text.strip().lower())
    if match is None:
        return text
    number, unit = match.groups()
    return number if unit in (None, "b") else f"{number}{'K' if unit == 'k' else unit.upper()}i"
