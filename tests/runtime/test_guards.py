"""What vLLM on a CPU would die of: sampling parameters at a step without drafts, and those of mixed batches."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dsd_runtime.guards import expand_batch_to_tokens
from tests.runtime.conftest import Engine
from tests.runtime.server import API_KEY

pytestmark = pytest.mark.engine

GREEDY_LIKE: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "top_k": {"temperature": 1, "top_k": 1, "seed": 3},
    "top_p": {"temperature": 1, "top_p": 1e-6, "seed": 4},
    "both": {"temperature": 0.7, "top_k": 1, "top_p": 0.5, "seed": 5},
    "cold": {"temperature": 0.0001, "seed": 6},
}
"""Sampling parameters that leave one token to choose."""


def ids(engine: Engine, parameters: dict[str, Any]) -> list[int]:
    """A completion, as token ids."""
    prompt = "the cat sat on the mat and the cat sat on the"
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 24, "ignore_eos": True, "return_token_ids": True}
    headers = {"Authorization": f"Bearer {API_KEY}"}
    answer = engine.server.client.post("/v1/completions", json=body | parameters, headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[int] = answer.json()["choices"][0]["token_ids"]
    return found


@pytest.mark.parametrize("k", [0, 4])
def test_every_sampling_parameter_works_alone(engine: Engine, k: int) -> None:
    """Alone, so that the step which computes the prompt has no drafts, and none has with K=0."""
    engine.swap([(1, 64, k)])
    outputs = {name: ids(engine, parameters) for name, parameters in GREEDY_LIKE.items()}
    assert outputs == dict.fromkeys(outputs, outputs["greedy"])


def test_every_draft_is_judged_by_the_parameters_of_its_request(engine: Engine) -> None:
    engine.swap([(1, 64, 3)])
    expected = ids(engine, GREEDY_LIKE["greedy"])
    mixed = [*GREEDY_LIKE.values(), {"temperature": 1.3, "seed": 7}, {"temperature": 1, "top_k": 50, "seed": 8}]
    with ThreadPoolExecutor(len(mixed)) as pool:
        outputs = list(pool.map(lambda parameters: ids(engine, parameters), mixed))
    assert outputs[: len(GREEDY_LIKE)] == [expected] * len(GREEDY_LIKE)


@pytest.mark.parametrize("seed", range(20))
def test_values_are_repeated_for_the_tokens_of_each_request(seed: int) -> None:
    import torch

    chance = random.Random(seed)
    counts = [chance.randint(0, 4) for _ in range(chance.randint(1, 6))]
    values = [chance.choice([0, 1, 5, 512]) for _ in counts]
    dtype = chance.choice([torch.int32, torch.float32])
    cumulative = torch.tensor(counts).cumsum(0).to(torch.int32)
    found = expand_batch_to_tokens(torch.tensor(values, dtype=dtype), cumulative, sum(counts), 0, 1)
    assert found.dtype == dtype
    assert found.tolist() == [value or 1 for value, n in zip(values, counts, strict=True) for _ in range(n)]
