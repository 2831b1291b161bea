"""The operator's settings: frozen, read once from environment variables. Imported by the entry point only."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

PREFIX: Final = "DSD_OPERATOR_"


class SettingsError(ValueError):
    """The environment does not make valid settings; the text has one line for each variable."""


class Settings(BaseModel):
    """Every setting; `DSD_OPERATOR_` and the field's name in capitals is its variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runtime_image: str = Field(min_length=1, description="Image of the engine pods where a resource names none.")
    namespace: str = Field(min_length=1, description="Namespace that the operator runs in.")
    service_account: str = Field(
        min_length=1, description="The operator's own service account; the engine pods accept schedules from it only."
    )
    watch_namespaces: tuple[str, ...] = Field(
        default=(), description="Namespaces to serve, separated by commas. Empty: all of them."
    )
    pod_labels: Mapping[str, str] = Field(
        default={"app.kubernetes.io/name": "dsd-operator"},
        description=(
            "Labels of the operator's own pod, as NAME=VALUE separated by commas: network policies of engines let pods "
            "of its namespace in that carry them."
        ),
    )
    monitoring_peers: tuple[dict[str, Any], ...] = Field(
        default=(),
        description=(
            "Who may read the engines' metrics where a resource has a network policy that does not say it: a JSON list "
            "of NetworkPolicy peers."
        ),
    )
    fs_group: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description=(
            "Group that gets the files of a cache's claim (spec.cache) where the resource names none. Unset: none, for "
            "platforms that hand out groups themselves."
        ),
    )
    log_format: Literal["json", "text"] = Field(default="json", description="json or text.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="DEBUG, INFO, WARNING or ERROR."
    )
    metrics_port: int = Field(default=8080, ge=0, le=65535, description="Port of /metrics; 0 takes a free one.")
    health_port: int = Field(
        default=8081, ge=0, le=65535, description="Port of /healthz and /readyz; 0 takes a free one."
    )
    resync_seconds: float = Field(
        default=600.0,
        gt=0,
        description="Seconds between two looks at every resource, changed or not; spread at random.",
    )
    workers: int = Field(default=32, ge=1, le=1024, description="Resources that are reconciled at the same time.")

    @field_validator("watch_namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))

    @field_validator("pod_labels", mode="before")
    @classmethod
    def _labels(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [part.strip().partition("=") for part in value.split(",") if part.strip()]
        if not all(key and equals for key, equals, _ in pairs):
            raise ValueError("write labels as NAME=VALUE, separated by commas")
        return {key: label for key, _, label in pairs}

    @field_validator("monitoring_peers", mode="before")
    @classmethod
    def _peers(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


def from_environment(environ: Mapping[str, str]) -> Settings:
    """Read the settings; raises SettingsError. Empty variables count as unset, as Helm charts leave them."""
    given = {name: environ[variable(name)] for name in Settings.model_fields if environ.get(variable(name), "").strip()}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(
            "\n".join(_line(str(e["loc"][0]), e["type"], str(e["msg"])) for e in error.errors())
        ) from error


def variable(field: str) -> str:
    """The environment variable of a field."""
    return PREFIX + field.upper()


def describe() -> str:
    """One paragraph for each variable, for `--help`."""
    fields = Settings.model_fields.items()
    return "\n".join(f"  {variable(name)}{_default(name)}\n      {field.description}" for name, field in fields)


def default_text(name: str) -> str:
    """The default of a field as one would write it in the variable; empty where there is none."""
    default = Settings.model_fields[name].default
    if isinstance(default, dict):
        return ",".join(f"{key}={value}" for key, value in default.items())
    return "" if default in ((), None) or Settings.model_fields[name].is_required() else str(default)


def _default(name: str) -> str:
    if Settings.model_fields[name].is_required():
        return " (required)"
    return f" (default: {default_text(name)})" if default_text(name) else ""


def _line(field: str, kind: str, message: str) -> str:
    return f"{variable(field)}: {'is not set' if kind == 'missing' else message}"
