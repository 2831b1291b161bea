"""Which names and texts may be secrets, and how they are kept out of everything that is printed.

A name says it (`HF_TOKEN`, `--api-key`), or the text does (a token's well-known beginning, a password in an address).
In doubt it is one: a Secret too many costs a line, a token in a Git repository costs a key.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

PLACEHOLDER: Final = "<secret>"

TOKEN_VARIABLES: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
"""Variables with a token of the Hugging Face hub."""

SECRET_OPTIONS: Final = ("--api-key", "--hf-token")
"""Options of vLLM whose value is a secret."""

_WORDS: Final = r"(?:API_?)?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?|AUTH"
_NAME: Final = re.compile(rf"(?:^|[_.-])(?:{_WORDS})(?:$|[_.-])|APIKEY", re.IGNORECASE)
_NOT_SECRET: Final = re.compile(r"_(?:FILE|PATH|DIR|NAME)$|^SSL_|KEY_?(?:CACHE|BLOCK)", re.IGNORECASE)

_NO_WORDS: Final = r"(?!(?:bos|eos|pad|unk|sep|cls|mask|stop|image|audio|video)_)"
_JSON_WORDS: Final = rf"{_NO_WORDS}(?:[\w-]*[_-])?(?:api_?key|token|secret|password|passwd|access_?key|credentials?)"
_SHAPES: Final = (
    re.compile(r"\b[a-zA-Z][\w+.-]*://([^/\s@\"']+)@"),
    re.compile(r"\b(hf_[A-Za-z0-9]{8,})"),
    re.compile(r"\b(sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,})"),
    re.compile(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b"),
    re.compile(r"\b(nvapi-[\w-]{16,}|xox[abprs]-[\w-]{10,})"),
    re.compile(r"\b(eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"),
    re.compile(r"\b[Bb]earer\s+([^\s\"',]{6,})"),
    re.compile(r"(?i)[?&](?:[\w-]*(?:token|key|secret|password|signature|sig))=([^&\s\"']+)"),
    re.compile(rf"(?i)[\"']{_JSON_WORDS}[\"']\s*:\s*\"((?:[^\"\\]|\\.)+)\""),
)
_SHORTEST: Final = 6
"""To cut a shorter one out everywhere would garble the rest; nothing prints it where it stands."""

_NO_SECRETS: Final = ("default", "disabled", "enabled")


def is_secret_name(name: str) -> bool:
    """Whether what is called so is probably a secret. Of vLLM's own variables one is, though many name tokens."""
    if name.startswith("VLLM_"):
        return name == "VLLM_API_KEY"
    return bool(_NAME.search(name)) and not _NOT_SECRET.search(name)


def holds_secret(text: str) -> bool:
    """Whether a part of `text` looks like a secret."""
    return any(shape.search(text) for shape in _SHAPES)


class Redactor:
    """Knows the secrets of one input and takes them out of texts."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, *secrets: str | None) -> None:
        """Values that must not be printed."""
        self._known |= {s.strip() for s in secrets if s and len(s.strip()) >= _SHORTEST and s not in _NO_SECRETS}

    def text(self, text: str) -> str:
        """`text` with every secret replaced."""
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, PLACEHOLDER)
        for shape in _SHAPES:
            text = shape.sub(_hidden, text)
        return text

    def data(self, data: Any, found: Callable[[str], None], path: str = "") -> Any:
        """`data` with the secrets in its strings replaced; `found` gets the path of each such string."""
        if isinstance(data, str):
            clean = self.text(data)
            if clean != data:
                found(path)
            return clean
        if isinstance(data, Mapping):
            return {k: self.data(v, found, f"{path}.{k}".lstrip(".")) for k, v in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(item, found, f"{path}[{i}]") for i, item in enumerate(data)]
        return data


def _hidden(match: re.Match[str]) -> str:
    start, end = match.span(1)
    whole = match.group(0)
    return whole[: start - match.start()] + PLACEHOLDER + whole[end - match.start() :]


def secrets_in(pairs: Iterable[tuple[str, str | None]]) -> list[str]:
    """The values whose names say that they are secrets."""
    return [value for name, value in pairs if value and is_secret_name(name)]
