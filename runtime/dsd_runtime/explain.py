"""What is wrong with a document, in words for the person who wrote it: pydantic's errors, with the nearest key.

`config_file` uses it for files, `routes` for bodies.
"""

from difflib import get_close_matches
from typing import Final

import yaml
from pydantic import BaseModel, ValidationError

from dsd_runtime.protocol import ConfigFile, Revision, TokenFileAuth, TokenReviewAuth
from dsd_runtime.schedule import ScheduleRange, Smoothing

_MODELS: Final[tuple[type[BaseModel], ...]] = (
    ConfigFile,
    Revision,
    ScheduleRange,
    Smoothing,
    TokenFileAuth,
    TokenReviewAuth,
)
_KEYS: Final = tuple(
    dict.fromkeys(field.alias or name for model in _MODELS for name, field in model.model_fields.items())
)
"""Every key that a person may write."""

_BRANCHES: Final = frozenset(model.__name__ for model in _MODELS)
"""Names that pydantic puts into the location of an error where a key may hold one of several objects."""

Location = tuple[int | str, ...]


def field_path(location: Location) -> str:
    """A pydantic error location as a person writes it: `ranges[0].startBatchSize`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def field_errors(error: ValidationError) -> list[tuple[str, str, str]]:
    """(field, message, pydantic's error type) of each error that a person should read.

    Left out: that a list with wrong items is too short as well, since pydantic counts the good ones; that a key is
    missing where it is only misspelt; what the less likely of two alternatives lacks.
    """
    found = _likely_branch([(e["loc"], e["msg"], e["type"]) for e in error.errors()])
    inner = {location[:i] for location, _, _ in found for i in range(len(location))}
    meant = {location: nearest(str(location[-1])) for location, _, kind in found if kind == "extra_forbidden"}
    misspelt = {(*location[:-1], key) for location, key in meant.items() if key is not None}
    return [
        (field_path(location), _message(message, kind, meant.get(location)), kind)
        for location, message, kind in found
        if not (kind == "too_short" and location in inner) and not (kind == "missing" and location in misspelt)
    ]


def nearest(key: str) -> str | None:
    """The key that was probably meant."""
    near = get_close_matches(key.replace("_", "").lower(), [known.lower() for known in _KEYS], n=1)
    return next((known for known in _KEYS if near and known.lower() == near[0]), None)


def yaml_error(error: Exception) -> str:
    """An error of PyYAML in one line, with the line and column in the text."""
    mark = getattr(error, "problem_mark", None)
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(str(error).split())
    context = f" ({error.context})" if error.context else ""
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}{context}"


def _message(message: str, kind: str, meant: str | None) -> str:
    if kind == "extra_forbidden":
        return "there is no such key" + (f"; did you mean {meant}?" if meant else "")
    return {"missing": "is missing"}.get(kind, message)


def _likely_branch(found: list[tuple[Location, str, str]]) -> list[tuple[Location, str, str]]:
    """The errors with only one alternative of each union left, the one that lacks least."""
    counts: dict[Location, dict[str, int]] = {}
    for location, _, kind in found:
        if split := _branch(location):
            parent, name = split
            branches = counts.setdefault(parent, {})
            branches[name] = branches.get(name, 0) + (2 if kind == "extra_forbidden" else 1)
    best = {parent: min(branches, key=lambda name: branches[name]) for parent, branches in counts.items()}
    return [
        (_without_branch(location), message, kind)
        for location, message, kind in found
        if (split := _branch(location)) is None or best[split[0]] == split[1]
    ]


def _branch(location: Location) -> tuple[Location, str] | None:
    for i, part in enumerate(location):
        if i > 0 and part in _BRANCHES:
            return location[:i], str(part)
    return None


def _without_branch(location: Location) -> Location:
    return tuple(part for i, part in enumerate(location) if i == 0 or part not in _BRANCHES)
