"""What to ask the engines: the served model's name, its longest context, and whether it takes chats.

One small request to the first engine finds out, and fails early and in words where the key or the model is wrong.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.prompts import Prompt, any_chat
from kubectl_dsd.profile.streams import Connection, RequestFailure, Settings, body_of

_BAD_REQUEST = 400


def served(connection: Connection, settings: Settings) -> Settings:
    """The settings with the engine's model, and its context in tokens; raises Failure."""
    try:
        models = json.loads(connection.get("/v1/models"))["data"]
        found = [m for m in models if not m.get("parent")] or models
        name, limit = str(found[0]["id"]), found[0].get("max_model_len")
    except (ValueError, LookupError, TypeError) as error:
        raise Failure(f"{connection.address} does not say which model it serves: /v1/models has none") from error
    if limit is not None and settings.max_tokens >= limit:
        raise Failure(
            f"--max-tokens {settings.max_tokens} does not fit into the engine's context of {limit} tokens",
            "Leave room for the prompt.",
        )
    return replace(settings, model=name, limit=limit)


def usable(prompts: Sequence[Prompt], connection: Connection, settings: Settings) -> tuple[Prompt, ...]:
    """The prompts as this model takes them: as plain text where it has no chat template. Raises Failure."""
    if any_chat(prompts) and not _takes(next(p for p in prompts if p.messages), connection, settings):
        prompts = [prompt.as_text() for prompt in prompts]
    for _ in connection.stream(body_of(prompts[0], settings, 1)):
        pass
    return tuple(prompts)


def _takes(prompt: Prompt, connection: Connection, settings: Settings) -> bool:
    try:
        for _ in connection.stream(body_of(prompt, settings, 1)):
            pass
    except RequestFailure as failure:
        if failure.status == _BAD_REQUEST and "template" in failure.message.lower():
            return False
        raise
    return True
