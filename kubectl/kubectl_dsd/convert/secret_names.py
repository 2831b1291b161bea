"""Which names say that what they name is a secret: of variables, options, keys of JSON and YAML.

In doubt it is one: a Secret too many costs a line, a token in a Git repository costs a key. `redactor` hides the
values.
"""

import re
from typing import Final

from dsd_runtime.vllm_options import ENVIRONMENT, OPTIONS

TOKEN_VARIABLES: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
"""Variables with a token of the Hugging Face hub."""

SECRET_OPTIONS: Final = ("--api-key", "--hf-token")
"""Options of vLLM whose value is a secret."""

_SECRET_VARIABLES: Final = ("VLLM_API_KEY", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY")
"""Of the variables that vLLM reads, those with a secret; many others name tokens."""

_ANYWHERE: Final = re.compile(
    r"password|passwd|passphrase|secret|api_?key|access_?key|private_?key|account_?key|credential|webhook|auth_?token"
    r"|access_?token|connection_?string|conn_?str|authorization"
)
"""What is so plain that it needs no boundary: PGPASSWORD, MINIO_SECRETKEY."""

_WORDS: Final = ("token", "pass", "pwd", "pw", "auth", "key", "keys", "header", "headers", "cookie", "cookies", "dsn")
_PLURAL: Final = re.compile(r"(?:^|_)(?:api|access|auth|bearer|hf|hub|refresh)_tokens(?:_|$)")

_BEFORE: Final[dict[str, tuple[str, ...]]] = {
    "token": (
        *("bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "image", "audio", "video", "per", "draft"),
        *("speculative", "spec", "start", "end", "first", "next", "last", "decode", "prefill", "min", "max", "num"),
    ),
    "key": ("topology",),
    "keys": ("label",),
    "headers": ("allowed", "id"),
    "header": ("max",),
}
"""Words before one of `_WORDS` with which it is something of a model, or of a pod."""

_AFTER: Final[dict[str, tuple[str, ...]]] = {
    "token": ("id", "ids", "index", "count", "limit", "budget", "budgets", "threshold", "tree", "num", "prob", "ratio"),
    "key": ("cache", "block", "blocks", "value", "values", "proj", "norm", "head", "heads", "dim"),
    "header": ("count",),
}
_PLAIN_ENDS: Final = (
    *("file", "path", "dir", "name", "ref", "type", "mode", "method", "enabled", "disabled", "timeout", "ttl"),
    *("seconds", "port", "size", "length", "limit", "algorithm", "format", "threshold"),
)
"""Last words with which a name is about a secret, and names none."""

_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLAIN_KEYS: Final = ("key", "keys", "secret", "secrets", "image_pull_secrets", "service_account_token")
"""Keys of Kubernetes that hold names, and mean little elsewhere; `secret` is such a one with an object below only."""


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", _HUMPS.sub("_", name).lower()) if word]


def is_secret_name(name: str) -> bool:
    """Whether what is called so is probably a secret. Each part of a dotted name is judged for itself."""
    if name in ENVIRONMENT:
        return name in _SECRET_VARIABLES
    first, *inner = name.split(".")
    option = first.replace("_", "-")
    known = option.startswith("--") and (option in OPTIONS or option.replace("--no-", "--", 1) in OPTIONS)
    outer = option in SECRET_OPTIONS if known else _is_secret(_words(first))
    return outer or any(_is_secret(_words(part)) for part in inner)


def _is_secret(words: list[str]) -> bool:
    if not words or words[-1] in _PLAIN_ENDS:
        return False
    joined = "_".join(words)
    if joined.startswith("automount_"):
        return False
    if _ANYWHERE.search(joined) or _PLURAL.search(joined):
        return True
    around = zip(words, ["", *words], [*words[1:], ""], strict=False)
    return any(
        word in _WORDS and before not in _BEFORE.get(word, ()) and after not in _AFTER.get(word, ())
        for word, before, after in around
    )


def is_secret_key(key: str, *, holds_object: bool) -> bool:
    """The same for a key of JSON or YAML, where a bare `key` is no secret (`{key: nvidia.com/gpu}`)."""
    joined = "_".join(_words(key))
    if joined in _PLAIN_KEYS and (holds_object or joined in ("key", "keys")):
        return False
    return is_secret_name(key)
