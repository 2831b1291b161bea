"""A load that hovers around a boundary, on the real engine: K changes as the policy says, the outputs never do.

The engine is stepped by hand, so the batch size of each step is known; K is what vLLM's own scheduler hands to the
worker. A second engine without speculation tells the outputs.
"""

from math import ceil
from pathlib import Path

import pytest

from bench.hover import LOW, SMOOTHING, content, speculative
from bench.stepped import MAX_TOKENS, PROMPTS, Arm, Plan, Played, play
from dsd_runtime.policy import policy_of
from dsd_runtime.protocol import SchedulePut

pytestmark = pytest.mark.engine

HIGH = 4
HOVERING = [8, 9] * 20
JUMPS = [8, 9, 8, 12, 12, 8, 9, 12, *[12] * 20, 3, 3, *[12] * 18, 12, 12, 8, 8]
"""Beyond the margin and back, before and after the end of a dwell."""

SIZES = [*HOVERING, *JUMPS]
POLICIES = {"table": content(LOW, HIGH), "smoothed": content(LOW, HIGH, SMOOTHING)}
SLOW = "dwell alone"
POLICIES[SLOW] = content(LOW, HIGH, {"dwellSteps": 7})


@pytest.fixture(scope="module")
def played(models: Path) -> dict[str, Played]:
    """What the engine did under each policy; "none" without speculation, every prompt to its end."""
    arms = [Arm(SIZES, policy) for policy in POLICIES.values()]
    target = str(models / "target")
    with_k, (without,) = play(
        [
            Plan(target, speculative(models)["ngram"], arms),
            Plan(target, None, [Arm([PROMPTS] * MAX_TOKENS)]),
        ]
    )
    return dict(zip(POLICIES, with_k, strict=True)) | {"none": without}


def expected(policy: str) -> list[int]:
    """K of each step, by the policy alone."""
    body = SchedulePut.model_validate({"revision": {"owner": "o", "number": 1}, **_tuples(POLICIES[policy])})
    chooser = policy_of(body.ranges, body.smoothing)
    return [chooser.choose(size, None) for size in SIZES]


def _tuples(found: dict[str, object]) -> dict[str, object]:
    ranges = found["ranges"]
    assert isinstance(ranges, list)
    return {**found, "ranges": tuple(ranges)}


@pytest.mark.parametrize("policy", POLICIES)
def test_k_is_the_policys_in_every_step(played: dict[str, Played], policy: str) -> None:
    assert played[policy].sizes == SIZES
    assert played[policy].tokens == expected(policy)


def test_smoothing_ends_the_thrash(played: dict[str, Played]) -> None:
    hovering = {name: Played(tokens=one.tokens[: len(HOVERING)]).changes for name, one in played.items()}
    assert hovering["table"] == len(HOVERING) - 1
    assert hovering["smoothed"] == 0
    assert hovering[SLOW] == ceil((len(HOVERING) - 1) / 7)
    assert 0 < played["smoothed"].changes < played["table"].changes


def test_outputs_equal_those_without_speculation(played: dict[str, Played]) -> None:
    plain = {prompt: tokens for prompt, tokens in played["none"].outputs if len(tokens) == MAX_TOKENS}
    assert len(plain) == PROMPTS
    for name in POLICIES:
        assert {prompt for prompt, _ in played[name].outputs} == set(plain)
        assert sum(len(tokens) == MAX_TOKENS for _, tokens in played[name].outputs) >= PROMPTS // 2
        for prompt, tokens in played[name].outputs:
            assert tokens == plain[prompt][: len(tokens)]
