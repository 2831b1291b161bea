"""Prompts of a profile: a built-in set of several kinds, or a JSONL file. How well drafts are accepted depends on them.

A line of the file is an object with `prompt` (a text, for /v1/completions) or `messages` (for /v1/chat/completions),
and `max_tokens` if it shall differ from --max-tokens.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubectl_dsd.errors import Failure

Message = dict[str, str]

_PROSE: Final = (
    "The lighthouse at Cape Morrow was built in 1871 from local granite. Its keeper lit the lamp at dusk and put it "
    "out at dawn. In 1964 an electric light took its place, and the keeper's house became a small museum."
)
_LOG: Final = (
    "09:14:02 INFO order 1180 received from customer 42\n09:14:03 WARN stock for item A-7 is low (3 left)\n"
    "09:14:05 ERROR payment for order 1180 declined: card expired\n09:14:09 INFO order 1180 put on hold"
)
_CODE: Final = (
    "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / len(values)"
)
_TABLE: Final = "city,people,area\nArlen,41200,18.5\nBrook,9800,6.1\nCole,120300,77.4\nDunmore,56100,31.9"

BUILT_IN: Final = {
    "edit": (
        f"Repeat this text, but write every year as words:\n\n{_PROSE}",
        f"Repeat this function, but name it average and its variable result:\n\n{_CODE}",
        f"Repeat this table with a header in capitals:\n\n{_TABLE}",
        f"Repeat this log without its times:\n\n{_LOG}",
    ),
    "code": (
        f"Write a test in Python for this function, empty input included:\n\n{_CODE}",
        "Write a Python function that reads a CSV file and gives the sum of each column.",
        "Write a SQL query that lists the ten customers with the most orders in the last month.",
        "Write a shell script that deletes log files older than seven days and says how many.",
    ),
    "chat": (
        "Why is the sky blue in the day and red in the evening?",
        "Give me a plan for three days in a city that I have never been to.",
        "How do I get a stain of coffee out of a white shirt?",
        "Explain to a child why ships of steel do not sink.",
    ),
    "extract": (
        f"Give the facts of this text as JSON with the keys place, built, material and changed:\n\n{_PROSE}",
        f"Which order failed, and why? Answer as JSON.\n\n{_LOG}",
        f"Which of these cities has the most people per area? Show the calculation.\n\n{_TABLE}",
        f"Give this table as a list of JSON objects:\n\n{_TABLE}",
    ),
    "write": (
        f"Summarise this text in one sentence, then translate it into French:\n\n{_PROSE}",
        "Write the first page of a story about a keeper of a lighthouse who finds a letter.",
        "Write a short mail that moves a meeting from Tuesday to Thursday and gives a reason.",
        "Write a poem of eight lines about the first snow.",
    ),
}
"""Kind -> what is asked: from answers that repeat the prompt (easy to draft) to free text (hard)."""


@dataclass(frozen=True)
class Prompt:
    """One request: `messages` for chat, or `text`."""

    text: str | None = None
    messages: tuple[Message, ...] | None = None
    max_tokens: int | None = None

    def as_text(self) -> "Prompt":
        """For a model without a chat template: the contents alone."""
        if self.messages is None:
            return self
        return Prompt("\n\n".join(m["content"] for m in self.messages) + "\n\n", None, self.max_tokens)


def built_in() -> tuple[Prompt, ...]:
    """The built-in set, its kinds mixed in an order that is always the same."""
    found = [Prompt(messages=({"role": "user", "content": text},)) for texts in BUILT_IN.values() for text in texts]
    random.Random(7).shuffle(found)
    return tuple(found)


def from_file(path: Path) -> tuple[Prompt, ...]:
    """The prompts of a JSONL file; raises Failure that names the line."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeError) as error:
        raise Failure(f"the prompts {path} cannot be read: {error}") from error
    found = tuple(_of_line(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise Failure(f"{path} has no prompt", 'One per line: {"prompt": "…"} or {"messages": [{"role": …}]}.')
    return found


def _of_line(line: str, where: str) -> Prompt:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise Failure(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Failure(f"{where} is no object", 'Write {"prompt": "…"} or {"messages": […]}.')
    limit = value.get("max_tokens")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise Failure(f"{where}: max_tokens is no number above 0")
    if isinstance(value.get("prompt"), str) and "messages" not in value:
        return Prompt(text=value["prompt"], max_tokens=limit)
    if _are_messages(value.get("messages")) and "prompt" not in value:
        return Prompt(messages=tuple(value["messages"]), max_tokens=limit)
    raise Failure(f"{where} needs either prompt (a text) or messages (a list of role and content)")


def _are_messages(value: Any) -> bool:
    return bool(
        isinstance(value, list)
        and value
        and all(
            isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in value
        )
    )


def any_chat(prompts: Sequence[Prompt]) -> bool:
    """Whether one of them needs a chat template."""
    return any(prompt.messages is not None for prompt in prompts)
