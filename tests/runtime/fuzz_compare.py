"""Compares what the swap campaign's engine answered with what the same requests get without speculation. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.runtime.fuzz_load import Job, job

TOLERANCE: Final = 2e-3
"""Of a logprob: batches of other shapes round float32 in another order."""

TIE: Final = 1e-3
"""Two tokens whose logprobs are as close as that are equally good: which one wins is a matter of rounding."""

Logprobs = list[list[tuple[int, float]]]


@dataclass
class Comparison:
    """How many requests and tokens of each kind were compared, what differs, and which ties broke the other way."""

    requests: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    logprobs: int = 0
    aborted: int = 0
    ties: int = 0
    differences: list[str] = field(default_factory=list)


def compare(seed: int, lora: bool, result: dict[str, Any]) -> Comparison:
    """Compare all requests of one plan, played with and without speculation."""
    found = Comparison()
    pairs = zip(result["with"]["played"], result["without"]["played"], strict=True)
    for number, (got, expected) in enumerate(pairs):
        request = job(seed, number, lora)
        found.requests[request.kind] += 1
        found.aborted += got["aborted"]
        _compare_one(found, request, got, expected)
    return found


def _compare_one(found: Comparison, request: Job, got: dict[str, Any], expected: dict[str, Any]) -> None:
    outputs = got["tokens"]
    if not got["aborted"] and outputs.keys() != expected["tokens"].keys():
        found.differences.append(f"{request}: outputs {sorted(outputs)} and not {sorted(expected['tokens'])}")
        return
    for index, tokens in outputs.items():
        length = _equal(found, request, index, tokens, expected)
        logprobs = got["logprobs"].get(index, [])
        if len(logprobs) != (len(tokens) if "logprobs" in request.parameters else 0):
            found.differences.append(f"{request}: {len(logprobs)} logprobs of {len(tokens)} tokens")
        _close(found, request, logprobs[:length], expected["logprobs"][index])
    if expected["prompt_logprobs"] is not None:
        if len(got["prompt_logprobs"] or ()) != len(expected["prompt_logprobs"]):
            found.differences.append(f"{request}: prompt logprobs are missing")
        _close(found, request, got["prompt_logprobs"] or [], expected["prompt_logprobs"])


def _equal(found: Comparison, request: Job, index: str, tokens: list[int], expected: dict[str, Any]) -> int:
    """Compare the tokens of one output; returns up to where they are equal."""
    wanted = expected["tokens"][index]
    same = next((i for i, (a, b) in enumerate(zip(tokens, wanted, strict=False)) if a != b), None)
    found.tokens += len(tokens) if same is None else same
    if same is not None:
        if _tie(expected["logprobs"][index][same], tokens[same]) and not request.grammar:
            found.ties += 1
        else:
            found.differences.append(f"{request}: token {same} is {tokens[same]} and not {wanted[same]}")
        return same
    # A request that its client left ends anywhere; all others end where the plain one does.
    if request.abort_after is None and len(tokens) != len(wanted):
        found.differences.append(f"{request}: {len(tokens)} tokens and not {len(wanted)}")
    return len(tokens)


def _tie(best: list[tuple[int, float]], token: int) -> bool:
    chances = dict(best)
    return token in chances and best[0][1] - chances[token] < TIE


def _close(found: Comparison, request: Job, got: Logprobs, expected: Logprobs) -> None:
    """Compare logprobs; tokens that only one side names are those beyond the number asked for."""
    for position, (mine, theirs) in enumerate(zip(got, expected, strict=False)):
        wanted = dict(theirs)
        for token, logprob in mine:
            found.logprobs += 1
            if token in wanted and abs(wanted[token] - logprob) > TOLERANCE:
                found.differences.append(f"{request}: logprob {position} of {token}: {logprob}, not {wanted[token]}")
