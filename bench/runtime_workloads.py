"""What the runtime's benchmarks ask of the engines: prompts and lengths, the same for every configuration.

`edit` is copy-and-edit: repeat a given text or program with one change, so most of the answer stands in the prompt and
drafts from n-grams are good. `chat` is free chat, greedy with a repetition penalty (a model of this size repeats itself
for ever without one), where such drafts are bad. Sampling with a temperature is not used: vLLM 0.32 on a CPU expands
the temperatures of drafted tokens into a copy (`cpu_triton_utils._expand_kernel_impl` converts the float output to
int64), so what it samples there is noise and no measure of acceptance. Our plugin mends that (`guards`); the other
configurations have it.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Kind = Literal["edit", "chat"]
KINDS: Final[tuple[Kind, ...]] = ("edit", "chat")
CONCURRENCIES: Final = (1, 2, 4, 8, 16, 32)
ROLLOUT_REQUESTS: Final = 32
CHAT_PENALTY: Final = 1.2
TEXT_TOKENS: Final = 110
"""Each text of prompts.json has at least so many tokens of SmolLM2."""
PROSE: Final = 2
"""The first texts of prompts.json are prose, the others programs."""


@dataclass(frozen=True)
class Task:
    """One request: greedy, exactly `tokens` tokens."""

    prompt: str
    tokens: int
    repetition_penalty: float = 1.0


_PROMPTS: Final[dict[str, list[str]]] = json.loads(Path(__file__).with_name("prompts.json").read_text())
_SYSTEM: Final = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""As in the model's own chat template."""

_NEW_NAME: Final = "Robert Miller"


def prompt(kind: Kind, number: int) -> str:
    """The prompt with this number, in the model's chat format; 48 different edits and 32 questions, then again."""
    texts, names, questions = _PROMPTS["texts"], _PROMPTS["names"], _PROMPTS["questions"]
    if kind == "chat":
        return _chat(questions[number % len(questions)])
    name = names[number // len(texts) % len(names)]
    text = texts[number % len(texts)].format(name=name)
    return _edit("code" if text.startswith("def ") else "text", name, text)


def _edit(what: str, name: str, text: str) -> str:
    return _chat(f"Repeat this {what}, but change the name {name} to {_NEW_NAME}:\n\n{text}")


def _chat(message: str) -> str:
    return f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"


def task(kind: Kind, number: int, tokens: int) -> Task:
    """The request with this number and length."""
    return Task(prompt(kind, number), tokens, CHAT_PENALTY if kind == "chat" else 1.0)


def closed_loop(kind: Kind, concurrency: int, tokens: int = 96) -> tuple[Task, ...]:
    """The requests of one run of the sweep: one and a half times as many as run at once, two at least.

    Their lengths are spread (2/3 to 4/3 of `tokens`), so that they do not all end in the same step.
    """
    number = max(2, concurrency * 3 // 2)
    return tuple(task(kind, i, tokens * (8 + i * 5 % 9) // 12) for i in range(number))


def rollout(number: int, requests: int = ROLLOUT_REQUESTS, longest: int = 448) -> tuple[Task, ...]:
    """The batch with this number, as reinforcement learning makes them: all start at once, lengths with a long tail.

    The lengths are log-normal (median 56 tokens, sigma 1, at most `longest`), drawn with the number as seed. Each
    request is an edit of as much text as its answer is long, so that drafts are as good at its end as at its beginning.
    """
    chance = random.Random(number)
    lengths = [min(longest, max(16, round(chance.lognormvariate(4.03, 1.0)))) for _ in range(requests)]
    return tuple(Task(_long_edit(number * requests + i, length), length) for i, length in enumerate(lengths))


def _long_edit(number: int, tokens: int) -> str:
    """An edit whose text has `tokens` tokens or more."""
    texts, names = _PROMPTS["texts"][:PROSE], _PROMPTS["names"]
    name = names[number // PROSE % len(names)]
    parts = [texts[(number + i) % len(texts)].format(name=name) for i in range(-(-tokens // TEXT_TOKENS))]
    return _edit("text", name, "\n\n".join(parts))
