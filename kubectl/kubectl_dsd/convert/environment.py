"""Environment variables: which of them the resource has a field for, which the operator owns, which are secrets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_runtime.owned import OWNED_ENV, OWNED_ENV_PREFIX
from dsd_runtime.vllm_options import ENVIRONMENT, VLLM_VERSION
from kubectl_dsd.convert.launch import Variable
from kubectl_dsd.convert.redactor import holds_secret
from kubectl_dsd.convert.report import NeededSecret, Report
from kubectl_dsd.convert.secret_names import TOKEN_VARIABLES, is_secret_name
from kubectl_dsd.convert.variables import explain, unknowns

API_KEY: Final = "VLLM_API_KEY"
_RUNNER: Final = "VLLM_USE_V2_MODEL_RUNNER"
_RUNNERS: Final = {"0": "V1", "1": "V2"}
_DEVICES: Final = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "HIP_VISIBLE_DEVICES",
)
_SHELL: Final = ("PATH", "PWD", "SHLVL", "TERM", "LANG", "LC_ALL", "_", "DEBIAN_FRONTEND", "PYTHONUNBUFFERED")
_DEVICE_PLUGIN: Final = "left out: in Kubernetes the device plugin decides which GPUs a container sees"
_TOKEN_KEY: Final = "token"
_LONGEST: Final = 200
"""Of a name, so that it still is one with what follows."""


@dataclass
class Environment:
    """What becomes of the variables."""

    env: list[dict[str, Any]] = field(default_factory=list)
    """For spec.engine.env, in order."""
    token: dict[str, str] | None = None
    """For spec.model.tokenSecretRef."""
    runner: str | None = None
    """For spec.engine.modelRunner."""
    devices: int | None = None
    """GPUs that the command was limited to."""


class EnvironmentSorter:
    """Sorts the variables of one engine; `name` is the resource's, by which Secrets are named."""

    def __init__(self, name: str, report: Report) -> None:
        self.name = name
        self.report = report
        self.found = Environment()

    def sort(self, variables: Sequence[Variable]) -> Environment:
        """Each variable once, the last one that has its name."""
        for variable in {v.name: v for v in variables}.values():
            self._one(variable)
        return self.found

    def secret(self, variable: str) -> dict[str, Any]:
        """A variable of the engine that comes from a Secret which somebody has to make."""
        needed = NeededSecret(f"{self.name[:_LONGEST]}-env", variable, variable)
        self.report.need(needed)
        self.report.note(f"env {variable}", f"may be a secret; it comes from key {variable} of Secret {needed.name}")
        return {"name": variable, "valueFrom": {"secretKeyRef": {"name": needed.name, "key": variable}}}

    def token(self, source: dict[str, Any] | None) -> None:
        """The hub's token, from the Secret that already holds it, or from one that has to be made."""
        reference = (source or {}).get("secretKeyRef") or {}
        if reference.get("name") and reference.get("key"):
            self.found.token = {"name": reference["name"], "key": reference["key"]}
        elif self.found.token is None:
            needed = NeededSecret(f"{self.name[:_LONGEST]}-hf-token", _TOKEN_KEY, "HF_TOKEN")
            self.report.need(needed)
            self.report.note("HF_TOKEN", f"is a secret; it comes from key {_TOKEN_KEY} of Secret {needed.name}")
            self.found.token = {"name": needed.name, "key": needed.key}

    def _one(self, variable: Variable) -> None:
        name, field_name = variable.name, f"env {variable.name}"
        if name in TOKEN_VARIABLES:
            self.token(variable.source)
        elif name == _RUNNER:
            self._runner(variable)
        elif name in OWNED_ENV or name.startswith(OWNED_ENV_PREFIX):
            self._owned(variable)
        elif name in _DEVICES:
            self._devices(variable)
        elif name in _SHELL:
            self.report.note(field_name, "left out: the image sets it")
        elif name.startswith("VLLM_") and name not in ENVIRONMENT and name != API_KEY:
            self.report.note(field_name, f"left out: vLLM {VLLM_VERSION} knows no such variable")
        elif variable.source is not None:
            self.found.env.append({"name": name, "valueFrom": variable.source})
        elif is_secret_name(name) or (variable.value and holds_secret(variable.value)):
            self.found.env.append(self.secret(name))
        else:
            self._plain(variable)

    def _plain(self, variable: Variable) -> None:
        field_name = f"env {variable.name}"
        if variable.value is None:
            self.report.problem(field_name, f"its value is not in the input; give it as {variable.name}=VALUE")
        elif missing := unknowns(variable.value):
            for what in missing:
                self.report.problem(field_name, explain(what))
        else:
            self.found.env.append({"name": variable.name, "value": variable.value})

    def _runner(self, variable: Variable) -> None:
        self.found.runner = _RUNNERS.get(variable.value or "")
        if self.found.runner is None:
            self.report.problem(f"env {_RUNNER}", "must be 0 or 1")
        else:
            self.report.note(f"env {_RUNNER}", f"written as engine.modelRunner {self.found.runner}")

    def _owned(self, variable: Variable) -> None:
        field_name = f"env {variable.name}"
        message = OWNED_ENV.get(variable.name, "belongs to the runtime, which sets it itself")
        if variable.name == "VLLM_DP_SIZE" and variable.value != "1":
            self.report.problem(field_name, message)
        elif variable.name in ("VLLM_PLUGINS", "VLLM_USE_RUST_FRONTEND") and variable.value not in ("", "0", "false"):
            self.report.lose(field_name, message)
        else:
            self.report.note(field_name, f"left out: {message}")

    def _devices(self, variable: Variable) -> None:
        listed = [part for part in (variable.value or "").split(",") if part.strip()]
        if variable.name != "NVIDIA_DRIVER_CAPABILITIES" and listed and not unknowns(variable.value or ""):
            self.found.devices = -1 if listed == ["all"] else len(listed)
        self.report.note(f"env {variable.name}", _DEVICE_PLUGIN)
