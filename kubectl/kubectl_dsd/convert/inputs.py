"""What the person gave, and which form it has.

Words after `--` were split by the person's own shell; a text comes from a file or stdin.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import yaml

from dsd_runtime.convert import ConvertError
from dsd_runtime.options import SPELLINGS
from dsd_runtime.schedule import Problem

Form = Literal["vllm", "docker", "compose", "kubernetes", "helm", "config", "json"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
TITLES: Final[Mapping[Form, str]] = {
    "vllm": "a vLLM command line",
    "docker": "a docker run line",
    "compose": "a compose file",
    "kubernetes": "a Kubernetes manifest",
    "helm": "values of a Helm chart",
    "config": "vLLM's own config file",
    "json": "a speculative config",
}

CONTAINER_PROGRAMS: Final = ("docker", "podman", "nerdctl")
_YAML_LINE: Final = re.compile(r"^(?:---|[A-Za-z_][\w.-]*:(?:\s|$)|- \S)", re.MULTILINE)
_CONTAINER_RUN: Final = re.compile(
    rf"(?:^|[\s;&|])(?:{'|'.join(CONTAINER_PROGRAMS)})\s+(?:container\s+)?(?:run|create)\b"
)
_NODES: Final = 100_000


@dataclass
class Input:
    """`words` or `text`, with `data` where the text is YAML or JSON."""

    form: Form
    words: list[str] | None = None
    text: str = ""
    data: list[Any] = field(default_factory=list)


def read_words(words: list[str], forced: Form | None) -> Input:
    """The input of words after `--`."""
    if len(words) == 1 and re.search(r"\s", words[0]):
        return read_text(words[0], forced)
    if forced in ("compose", "kubernetes", "helm", "config"):
        raise ConvertError([Problem("", f"{TITLES[forced]} is a file: give it with -f FILE, or - for stdin")])
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return Input(forced or "json", text=words[0])
    is_container = words[0].rpartition("/")[2] in (*CONTAINER_PROGRAMS, "sudo") and {"run", "create"} & set(words[:4])
    return Input(forced or ("docker" if is_container else "vllm"), words=words)


def read_text(text: str, forced: Form | None) -> Input:
    """The input of a text; raises ConvertError where it cannot be read."""
    if "\0" in text:
        raise ConvertError([Problem("", "this is no text")])
    if not text.strip():
        raise ConvertError([Problem("", "the input is empty")])
    form = forced or _form(text)
    if form in ("vllm", "docker", "json"):
        return Input(form, text=text)
    data = load(text)
    return Input(form, text=text, data=data)


def load(text: str) -> list[Any]:
    """The documents of a YAML text; raises ConvertError."""
    try:
        data = [document for document in yaml.safe_load_all(text) if document is not None]
        _count(data, 0)
    except yaml.YAMLError as error:
        raise ConvertError([Problem("", _yaml_message(error))]) from error
    except (ValueError, RecursionError) as error:  # a date that is none, a nest too deep
        raise ConvertError([Problem("", f"no valid YAML: {error}")]) from error
    return data


def _yaml_message(error: yaml.YAMLError) -> str:
    """Where and what, without the text of the file: it may hold secrets."""
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"no valid YAML{where}: {getattr(error, 'problem', None) or 'it cannot be read'}"


def _count(value: Any, seen: int) -> int:
    """The number of values, aliases unfolded; a few of them could unfold to more than the memory holds."""
    if seen > _NODES:
        raise ValueError(f"more than {_NODES} values")
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in items:
        seen = _count(item, seen + 1)
    return seen


def _form(text: str) -> Form:
    if text.lstrip().startswith("{") or (text.lstrip().startswith("[") and _is_json(text)):
        return _json_form(text)
    if not _YAML_LINE.search(text):
        return "docker" if _CONTAINER_RUN.search(text) else "vllm"
    documents = [document for document in load(text) if isinstance(document, Mapping)]
    if not documents:
        raise ConvertError([Problem("", "this YAML holds no object; what is it? Say so with --from")])
    return _yaml_form(documents[0])


def _is_json(text: str) -> bool:
    """Whether a text in brackets is JSON; a script may begin with a test."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json_form(text: str) -> Form:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return "json"  # whose reader says what is wrong with it
    first = data[0] if isinstance(data, list) and data else data
    return _yaml_form(first) if isinstance(first, Mapping) and ("kind" in first or "services" in first) else "json"


def _yaml_form(data: Mapping[Any, Any]) -> Form:
    if "kind" in data and "apiVersion" in data:
        return "kubernetes"
    if isinstance(data.get("services"), Mapping):
        return "compose"
    if {"speculative_config", "speculative-config"} & data.keys():
        return "config"
    keys = [str(key) for key in data]
    options = [key for key in keys if f"--{key.partition('.')[0]}".replace("_", "-") in SPELLINGS]
    return (
        "config" if options and len(options) * 2 > len(keys) and not isinstance(data.get("model"), Mapping) else "helm"
    )
