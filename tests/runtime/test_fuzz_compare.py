"""The comparison of the swap campaign finds what differs, and nothing else."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.fuzz_compare import TIE, compare
from tests.runtime.fuzz_load import job

SEED = 5
JOBS = 28
"""Two of each kind, so that there are structured, aborted and multiple ones, with and without logprobs."""

Result = dict[str, Any]


def played(number: int) -> Result:
    """What a request of the load could answer: three tokens, each with a clear second."""
    request = job(SEED, number, lora=False)
    outputs = [str(index) for index in range(request.parameters.get("n", 1))]
    best = [[(token, -0.5), (99, -2.0)] for token in (7, 8, 9)]
    prompt = [[(token, -1.0)] for token in request.prompt] if "prompt_logprobs" in request.parameters else None
    return {
        "tokens": {index: [7, 8, 9] for index in outputs},
        "logprobs": {index: copy.deepcopy(best) for index in outputs},
        "prompt_logprobs": prompt,
        "aborted": False,
    }


def result() -> Result:
    """Two plays that are equal; with speculation, logprobs are there for those who asked."""
    without = [played(number) for number in range(JOBS)]
    with_ = copy.deepcopy(without)
    for number, one in enumerate(with_):
        if "logprobs" not in job(SEED, number, lora=False).parameters:
            one["logprobs"] = {}
    return {"with": {"played": with_}, "without": {"played": without}}


def number_of(kind: str) -> int:
    """The first request of a kind."""
    return next(n for n in range(JOBS) if job(SEED, n, lora=False).kind == kind)


def test_equal_plays_are_equal() -> None:
    found = compare(SEED, False, result())
    assert found.differences == []
    assert found.tokens == sum(3 * job(SEED, n, False).parameters.get("n", 1) for n in range(JOBS))
    assert found.ties == 0
    assert found.logprobs > 0


CHANGES: dict[str, tuple[str, Callable[[Result], Any]]] = {
    "another token": ("plain", lambda one: one["tokens"]["0"].__setitem__(1, 50)),
    "another token of the second output": ("n", lambda one: one["tokens"]["1"].__setitem__(2, 50)),
    "an output too few": ("n", lambda one: one["tokens"].pop("1")),
    "a token too few": ("long prompt", lambda one: one["tokens"]["0"].pop()),
    "a token too many": ("streaming", lambda one: one["tokens"]["0"].append(7)),
    "nothing": ("repeats", lambda one: one["tokens"].clear()),
    "another logprob": ("logprobs", lambda one: one["logprobs"]["0"].__setitem__(1, [(8, -0.6)])),
    "a logprob too few": ("logprobs", lambda one: one["logprobs"]["0"].pop()),
    "no prompt logprobs": ("prompt logprobs", lambda one: one.__setitem__("prompt_logprobs", None)),
    "another prompt logprob": (
        "prompt logprobs",
        lambda one: one["prompt_logprobs"].__setitem__(0, [(one["prompt_logprobs"][0][0][0], -1.5)]),
    ),
    "another token before the client left": ("abort", lambda one: one["tokens"]["0"].__setitem__(0, 50)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_differences_are_found(change: str) -> None:
    kind, make = CHANGES[change]
    changed = result()
    make(changed["with"]["played"][number_of(kind)])
    assert compare(SEED, False, changed).differences


@pytest.mark.parametrize(("gap", "tie"), [(TIE / 2, True), (TIE * 2, False)])
@pytest.mark.parametrize("kind", ["plain", "structured"])
def test_equally_good_tokens_are_a_tie(kind: str, gap: float, tie: bool) -> None:
    """With a grammar the best of all tokens may not be the best of those allowed, so there are no ties."""
    changed = result()
    number = number_of(kind)
    changed["without"]["played"][number]["logprobs"]["0"][1] = [(8, -0.5), (50, -0.5 - gap)]
    changed["with"]["played"][number]["tokens"]["0"][1:] = [50, 51, 52]
    found = compare(SEED, False, changed)
    tie = tie and kind == "plain"
    assert (found.ties, bool(found.differences)) == (int(tie), not tie)


def test_a_client_that_left_may_have_seen_less() -> None:
    changed = result()
    changed["with"]["played"][number_of("abort")] |= {"tokens": {"0": [7]}, "aborted": True}
    found = compare(SEED, False, changed)
    assert (found.differences, found.aborted) == ([], 1)
