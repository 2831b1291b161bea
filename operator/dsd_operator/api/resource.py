"""The resource itself, and `parse`, which turns what the API server stores into the frozen models.

The API server has validated the object against the CRD; `parse` still checks everything it relies on, because an object
can be older than the CRD's rules.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field, ValidationError

from dsd_operator.api.common import ApiModel
from dsd_operator.api.spec import Spec
from dsd_runtime.schedule import Problem

_FREE_FORM: Final = frozenset({("spec", "podTemplate"), ("spec", "resources"), ("spec", "drafter", "parameters")})
"""Maps that are passed on: a null means absent there too, but numbers keep their spelling."""


class InvalidResource(ValueError):  # noqa: N818 - reads as what it is: parse(...) or InvalidResource
    """The object cannot be understood; `problems` says where and why."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = problems


class Metadata(ApiModel):
    """The part of metadata that the operator uses."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class DSDDeployment(ApiModel):
    """One DSDDeployment. `status` is what is stored, untyped: the operator rebuilds it and only compares."""

    metadata: Metadata
    spec: Spec
    status: dict[str, Any] = Field(default_factory=dict)


def parse(body: Mapping[str, Any]) -> DSDDeployment:
    """Read an object of the API server; raises InvalidResource with every problem found."""
    plain = {key: _plain(body.get(key), (key,)) or {} for key in ("metadata", "spec", "status")}
    try:
        return DSDDeployment.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise InvalidResource(tuple(_problem(e) for e in error.errors(include_url=False))) from error


def _plain(value: Any, path: tuple[str, ...], free: bool = False) -> Any:
    """Plain JSON types, nulls left out, whole floats as integers (the API server stores 3.0 as it was sent)."""
    free = free or path in _FREE_FORM
    if isinstance(value, Mapping):
        return {k: _plain(v, (*path, k), free) for k, v in value.items() if v is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v, path, free) for v in value if v is not None]
    if isinstance(value, float) and value.is_integer() and not free:
        return int(value)
    return value


def _problem(error: Any) -> Problem:
    return Problem(_path(error["loc"]), str(error["msg"]))


def _path(location: Sequence[str | int]) -> str:
    """`("spec", "schedule", 0, "endBatchSize")` as `spec.schedule[0].endBatchSize`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
