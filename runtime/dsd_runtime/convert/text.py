"""A JSON object out of a command line or a file, and where that fails the likely reason.

Shells, blogs and templates damage JSON in a few typical ways. Nothing is repaired silently: the error names the kind of
damage and shows the repaired text for the person to check.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

import yaml

from dsd_runtime.convert.report import ConvertError
from dsd_runtime.schedule import Problem

_NOTHING: Final = ("", "null", "None", "false", "{}")
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)|\$\(([^)]*)\)")
_QUOTES: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})


def parse_object(text: str, field: str = "speculative config") -> dict[str, Any]:
    """Parse a JSON object, strictly: no key twice, no NaN. Raises ConvertError with the likely reason."""
    if text.strip() in _NOTHING:
        _fail(field, "this is empty: no speculative decoding is configured here")
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_json)
    except ConvertError:
        raise
    except (ValueError, RecursionError) as error:
        _fail(field, diagnose(text, str(error)))
    if not isinstance(data, dict):
        _fail(field, f"must be a JSON object, {{…}}, and is {_kind(data)}")
    return data


def diagnose(text: str, error: str) -> str:
    """What is probably wrong with a text that is no JSON, and the text it was meant to be where that can be said."""
    if word := _option(text):
        return f"this begins with {word}; give only the value after it"
    if variables := _VARIABLE.search(text):
        return _about_variable(text, variables)
    if repaired := _repair(text):
        kinds, data = repaired
        return f"not valid JSON ({'; '.join(kinds)}). Did you mean '{json.dumps(data, ensure_ascii=False)}'"
    if text.count("{") > text.count("}"):
        return "not valid JSON: it ends in the middle; a shell cuts at a space, so put single quotes around the value"
    return f"not valid JSON: {error}"


def _fail(field: str, message: str) -> NoReturn:
    raise ConvertError([Problem(field, message)])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for i, (key, _) in enumerate(pairs):
        if key in [other for other, _ in pairs[:i]]:
            _fail(key, "is given twice; vLLM would take the last one. Keep one")
    return dict(pairs)


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _kind(data: Any) -> str:
    return {list: "a list", str: "a text", bool: "true or false"}.get(type(data), "a number")


def _option(text: str) -> str | None:
    words = re.split(r"[\s=]", text.strip(), maxsplit=1)
    return words[0] if words[0].startswith("-") and not words[0][1:2].isdigit() else None


def _about_variable(text: str, found: re.Match[str]) -> str:
    name, default, plain, command = found.groups()
    if command is not None:
        return f"$({command}) is for a shell to run; give what it prints"
    if default is None:
        return f"the variable {name or plain} has not been filled in; put its value there"
    filled = text[: found.start()] + default + text[found.end() :]
    return f"the variable {name} has not been filled in. With its default that would be '{filled.strip()}'"


def _inner(text: str) -> str:
    stripped = text.strip()
    quoted = len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\""
    return stripped[1:-1] if quoted else text


_REPAIRS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("the value still has shell quotes around it", _inner),
    ("typographic quotes", lambda text: text.translate(_QUOTES)),
    (
        "quotes with backslashes before them",
        lambda text: text.replace('\\"', '"').replace("\\{", "{").replace("\\}", "}"),
    ),
    ("doubled braces", lambda text: text.replace("{{", "{").replace("}}", "}")),
    ("a trailing comma", lambda text: re.sub(r",(\s*[}\]])", r"\1", text)),
)


def _repair(text: str) -> tuple[list[str], dict[str, Any]] | None:
    """(what was wrong, what was meant), after as few repairs as it takes."""
    kinds = []
    for kind, repair in _REPAIRS:
        changed = repair(text)
        if changed != text:
            kinds.append(kind)
            text = changed
            if data := _object(json.loads, text):
                return kinds, data
    for kind, read in (("this is Python, not JSON", _read_python), ("the shell removed the quotes", _read_bare)):
        if data := _object(read, text):
            return [*kinds, kind], data
    return None


def _object(read: Callable[[str], Any], text: str) -> dict[str, Any] | None:
    try:
        data = read(text.strip())
        json.dumps(data)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, yaml.YAMLError):
        return None
    return data if isinstance(data, dict) and all(isinstance(key, str) for key in data) else None


def _read_python(text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in what is no Python after all
        return ast.literal_eval(text)


def _read_bare(text: str) -> Any:
    """`{method: mtp, num_speculative_tokens:3}`: YAML reads it once a space follows each colon."""
    if "*" in text or "&" in text:  # YAML's aliases: a few of them unfold to more than the memory holds
        raise ValueError("no plain object")
    data = yaml.safe_load(re.sub(r":(?=\S)", ": ", text))
    if isinstance(data, dict) and None in data.values():
        raise ValueError("cut short")
    return data
