"""The mixed load of the swap campaign: an endless, repeatable sequence of requests of many kinds.

Plain data, so that the process with the engine (`fuzz_player`) and the test that compares outputs
(`test_fuzz_swaps`) make the same requests from the same seed. Sampling is greedy everywhere; vLLM refuses n > 1 with
temperature 0, so those requests have top_k=1, which leaves one token to sample.

No request has a seed: vLLM 0.32 on a CPU ends at one whose prompt comes in chunks or is computed again, with or without
speculation (`_bookkeeping_sync` of `v1/worker/gpu_model_runner.py` moves the offset of its generator, and one on a CPU
has none).
"""

import random
from dataclasses import dataclass, field
from typing import Any, Final

VOCABULARY: Final = range(7, 512)
"""Token ids of prompts: all of the tiny models' but the special ones."""

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z ]{8,40}$"},
        "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 6},
    },
    "required": ["name", "numbers"],
    "additionalProperties": False,
}
GRAMMARS: Final[tuple[dict[str, Any], ...]] = (
    {"regex": "[a-z]{1,8}( [a-z]{1,8}){3,9}"},
    {"regex": "(ab|cd){4,40}[0-9]{6}"},
    {"choice": ["the cat sat on the mat", "the cow sat on the mat and the mat", "no"]},
    {"json": SCHEMA},
)
KINDS: Final = (
    *("plain", "plain", "long prompt", "long prompt", "repeats", "repeats"),
    *("structured", "structured", "streaming", "abort", "n", "logprobs", "prompt logprobs", "lora"),
)
"""How often each kind comes."""


@dataclass(frozen=True)
class Job:
    """One request. `abort_after` is the number of tokens after which the client goes away."""

    number: int
    kind: str
    prompt: tuple[int, ...]
    parameters: dict[str, Any] = field(default_factory=dict)
    grammar: dict[str, Any] | None = None
    streaming: bool = False
    lora: bool = False
    abort_after: int | None = None


def job(seed: int, number: int, lora: bool) -> Job:
    """The request with this number; every kind comes at least once in len(KINDS) requests.

    vLLM 0.32 on a CPU ends at prompt logprobs where LoRA is on, with or without speculation (`add_lora_logits` of
    `lora/punica_wrapper/punica_cpu.py` takes one row per request), so an engine has one of the two. There every request
    uses the adapter: in a batch with others, one without gets it on a CPU too (index -1 picks the last adapter in
    `lora/ops/torch_ops/lora_ops.py`), so what it answers depends on its company.
    """
    chance = random.Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    if kind == ("prompt logprobs" if lora else "lora"):
        kind = "logprobs" if lora else "plain"
    parameters: dict[str, Any] = {"temperature": 0.0, "max_tokens": chance.randint(4, 100), "ignore_eos": True}
    traits = _traits(chance, kind) | {"lora": lora}
    return Job(number, kind, _prompt(chance, kind), parameters | _extra(chance, kind), **traits)


def _prompt(chance: random.Random, kind: str) -> tuple[int, ...]:
    if kind == "long prompt":
        return tuple(chance.choices(VOCABULARY, k=chance.randint(100, 300)))
    phrase = chance.choices(VOCABULARY, k=chance.randint(2, 12))
    return tuple(phrase * chance.randint(1, 6)) if kind == "repeats" else tuple(phrase)


def _extra(chance: random.Random, kind: str) -> dict[str, Any]:
    if kind == "n":
        return {"n": chance.randint(2, 3), "temperature": 1.0, "top_k": 1}
    if kind == "logprobs":
        return {"logprobs": chance.randint(1, 4)}
    if kind == "prompt logprobs":
        return {"prompt_logprobs": 2, "logprobs": 1}
    return {"max_tokens": 100, "ignore_eos": False} if kind == "structured" else {}


def _traits(chance: random.Random, kind: str) -> dict[str, Any]:
    return {
        "grammar": chance.choice(GRAMMARS) if kind == "structured" else None,
        "streaming": kind == "streaming" or chance.random() < 0.2,
        "abort_after": chance.randint(0, 15) if kind == "abort" else None,
    }
