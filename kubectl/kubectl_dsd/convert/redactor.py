"""Takes secrets out of everything that is printed.

A name says that a value is one (`secret_names`), or its text does: a token's well-known beginning, a password in an
address. What was found once is hidden wherever it appears, so the whole input is searched before anything is said.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from kubectl_dsd.convert.secret_names import is_secret_key, is_secret_name

PLACEHOLDER: Final = "<secret>"

_SHAPES: Final = (
    re.compile(r"\b[a-zA-Z][\w+.-]*://([^/\s@\"']+)@"),
    re.compile(r"\b(hf_[A-Za-z0-9]{8,})"),
    re.compile(r"\b(sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,})"),
    re.compile(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b"),
    re.compile(r"\b(nvapi-[\w-]{16,}|xox[abprs]-[\w-]{10,})"),
    re.compile(r"\b(eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"),
    re.compile(r"\b[Bb]earer\s+([^\s\"',<]{6,})"),
    re.compile(r"\b[Bb]asic\s+((?=\S*(?:[0-9+/=]|[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2})"),
    re.compile(r"(?i)\bauthorization[\"'\\]*\s*[:=]\s*[\"'\\]*((?!<)(?:\w+\s+)?[^\s\"',<\\]+)"),
    re.compile(r"(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([^;\s\"'<]+)"),
    re.compile(r"(?i)[?&](?:[\w-]*(?:token|key|secret|password|signature|sig))=([^&\s\"']+)"),
    re.compile(r"(?i)\bhttps?://[^\s\"'/]*\b(?:hooks?|discord\w*)\.[^\s\"'/]+/([^\s\"'<]{16,})"),
    re.compile(r"(?i)\bhttps?://[^\s\"']*/(?:web)?hooks?/([^\s\"'<]{16,})"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))"),
)
_VALUE: Final = r"(?:\"(?P<double>(?:[^\"\\]|\\.)+)\"|'(?P<single>[^']+)'|(?P<plain>[^\s\"',;\\{}\[\]|&<>`]+))"
_ASSIGNED: Final = re.compile(rf"(?P<name>(?:--)?[A-Za-z_][\w.-]*)=\\?{_VALUE}")
_QUOTED: Final = re.compile(rf"\\?[\"'](?P<name>[A-Za-z_][\w.-]*)\\?[\"']\s*:\s*\[?\s*\\?{_VALUE}")
_SPOKEN: Final = re.compile(
    rf"(?:(?P<option>--[A-Za-z][\w.-]*)\s+|(?<![\w.-])(?P<name>[A-Za-z_][\w.-]*):[ \t]+)(?!-){_VALUE}"
)
"""An option with its value, or a header; only in what the person gave: our own sentences look like that, too."""

_OPTION: Final = re.compile(r"--?[A-Za-z][\w.-]*")
_REFERENCE: Final = re.compile(r"\$\$?(?:\w+|\(\w+\)|\{\w+\})|VALUE|None|\.\.\.|…")
_SHORTEST: Final = 6
"""To cut a shorter one out everywhere would garble the rest; nothing prints it where it stands."""

_NO_SECRETS: Final = (
    "default",
    "disabled",
    "enabled",
    "true",
    "false",
    "none",
    "null",
    "auto",
    "required",
    PLACEHOLDER,
)


def _nothing(_: str) -> None:
    """Nobody asks where."""


def _is_plain(value: str) -> bool:
    """Whether a text cannot be the secret itself: a reference, or a word that switches something."""
    return not value.strip() or value.strip().lower() in _NO_SECRETS or bool(_REFERENCE.fullmatch(value.strip()))


def holds_secret(text: str) -> bool:
    """Whether a part of `text` is probably a secret."""
    return bool(Redactor().data(text, _nothing) != text)


class Redactor:
    """Knows the secrets of one input and takes them out of texts."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, *secrets: str | None) -> None:
        """Values that must not be printed."""
        self._known |= {s.strip() for s in secrets if s and len(s.strip()) >= _SHORTEST and not _is_plain(s)}

    def learn_text(self, text: str) -> None:
        """Every secret of a text that is no YAML, or broken: a script, a line of docker."""
        self._string(text)
        for match in (*_ASSIGNED.finditer(text), *_QUOTED.finditer(text), *_SPOKEN.finditer(text)):
            if is_secret_name(_name(match)):
                # A broken YAML file's error may name an alias or a tag without its sign.
                self.learn(value := _value(match)[0], value.lstrip("*&!"))

    def text(self, text: str) -> str:
        """`text` with every secret replaced."""
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, PLACEHOLDER)
        for shape in _SHAPES:
            text = shape.sub(self._hidden, text)
        for pairs in (_QUOTED, _ASSIGNED):
            text = pairs.sub(self._judged, text)
        return text

    def data(self, data: Any, found: Callable[[str], None], path: str = "", *, secret: bool = False) -> Any:
        """`data` with its secrets replaced; `found` gets the path of each. `secret`: what holds it is called so."""
        if isinstance(data, Mapping):
            return self._mapping(data, found, path, secret=secret)
        if isinstance(data, list | tuple):
            named = _after_secret_options(data)
            return [self.data(item, found, f"{path}[{i}]", secret=secret or i in named) for i, item in enumerate(data)]
        if secret and isinstance(data, int | float) and not isinstance(data, bool):
            self.learn(str(data))
            clean: Any = PLACEHOLDER
        elif isinstance(data, str):
            clean = self._secret(data) if secret else self._string(data)
        else:
            return data
        if clean != data:
            found(path)
        return clean

    def _mapping(self, data: Mapping[Any, Any], found: Callable[[str], None], path: str, *, secret: bool) -> Any:
        judged = {key: secret or _holds(key, value, data) for key, value in data.items()}
        return {
            key: self.data(value, found, f"{path}.{key}".lstrip("."), secret=judged[key]) for key, value in data.items()
        }

    def _secret(self, value: str) -> str:
        if _is_plain(value):
            return value
        self.learn(value)
        return PLACEHOLDER

    def _string(self, text: str) -> str:
        """A text of the input: JSON, a script, a word of a command."""
        name, equals, value = text.partition("=")
        if equals and _OPTION.fullmatch(name) and is_secret_name(name):
            return f"{name}={self._secret(value)}"
        start, body = (f"{name}=", value) if equals and _OPTION.fullmatch(name) else ("", text)
        if (inner := _json(body)) is not None:
            clean = self.data(inner, _nothing)
            return text if clean == inner else start + json.dumps(clean, ensure_ascii=False)
        return self.text(_SPOKEN.sub(self._judged, text))

    def _judged(self, match: re.Match[str]) -> str:
        """A pair of name and value, without the value where the name says that it is a secret."""
        value, group = _value(match)
        if not is_secret_name(_name(match)) or _is_plain(value):
            return match.group(0)
        self.learn(value)
        return _without(match, *match.span(group))

    def _hidden(self, match: re.Match[str]) -> str:
        return match.group(0) if _is_plain(match[1]) else _without(match, *match.span(1))


def _holds(key: Any, value: Any, around: Mapping[Any, Any]) -> bool:
    """Whether `key` of `around` says that `value` is a secret, or a `name` beside it does."""
    if key == "value" and isinstance(around.get("name"), str):
        return is_secret_name(around["name"])
    if key == "secretKey" and "secretName" in around:
        return False  # the key in a Secret, in charts
    return is_secret_key(str(key), holds_object=isinstance(value, Mapping | list))


def _after_secret_options(words: Sequence[Any]) -> set[int]:
    """Positions of the words that are values of options which name a secret."""
    pairs = enumerate(pairwise(words), start=1)
    return {
        i
        for i, (word, following) in pairs
        if isinstance(word, str) and _OPTION.fullmatch(word) and is_secret_name(word)
        if not str(following).startswith("-")
    }


def _json(text: str) -> Any:
    """The object or list that `text` is; None where it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _name(match: re.Match[str]) -> str:
    return str(match.groupdict().get("option") or match["name"])


def _value(match: re.Match[str]) -> tuple[str, str]:
    """The value, and the name of its group."""
    return next((match[group], group) for group in ("double", "single", "plain") if match[group] is not None)


def _without(match: re.Match[str], start: int, end: int) -> str:
    whole, before = match.group(0), match.start()
    return whole[: start - before] + PLACEHOLDER + whole[end - before :]


def secrets_in(pairs: Iterable[tuple[str, str | None]]) -> list[str]:
    """The values whose names say that they are secrets."""
    return [value for name, value in pairs if value and is_secret_name(name)]
