"""The policy: off it is the table; with smoothing it changes K later and more rarely, and never to anything new.

The properties run over any schedule, any smoothing and any sequence of batch sizes; `model` states the rule a second
time, by looking back over all steps instead of counting.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_runtime.policy import SETTLE_STEPS, SmoothedPolicy, TablePolicy, policy_of
from dsd_runtime.schedule import MAX_BATCH_SIZE, Lookup, Ranges, Smoothing, from_triples
from tests.unit.runtime_core.strategies import smoothings, valid_ranges

SEED = from_triples([(1, 64, 3), (65, 128, 1), (129, 512, 0)])
SCHEDULES = valid_ranges(5)
LOADS = st.lists(
    st.one_of(
        st.lists(st.integers(1, 2000), max_size=20),
        st.tuples(st.integers(1, 80), st.lists(st.integers(0, 6), max_size=60)).map(lambda t: [t[0] + d for d in t[1]]),
        st.tuples(st.integers(1, 200), st.integers(1, 250)).map(lambda t: [t[0]] * t[1]),
    ),
    min_size=1,
    max_size=6,
).map(lambda parts: [size for part in parts for size in part] or [1])
"""Batch sizes step by step: jumps, hovering within a few sizes, and long constant stretches."""


def smoothing(dwell: int = 0, margin: int = 0) -> Smoothing:
    return Smoothing(dwell_steps=dwell, margin_percent=margin)


def run(ranges: Ranges, how: Smoothing | None, load: Sequence[int]) -> list[int]:
    """K of each step."""
    policy = policy_of(ranges, how)
    return [policy.choose(size, None) for size in load]


def changes(tokens: Sequence[int]) -> list[int]:
    """The steps in which K differs from the step before."""
    return [step for step, (before, after) in enumerate(pairwise(tokens), start=1) if before != after]


def boundaries(ranges: Ranges) -> list[int]:
    """The batch sizes at which the table's K changes on the way up."""
    return [b.start_batch_size for a, b in pairwise(ranges) if a.num_speculative_tokens != b.num_speculative_tokens]


def beyond(ranges: Ranges, margin: int, settled: int, size: int) -> bool:
    """Whether `size` lies beyond the margin of a boundary next to the tier of `settled`."""
    starts = [1, *boundaries(ranges), MAX_BATCH_SIZE + 1]
    tier = max(i for i, start in enumerate(starts) if start <= settled)
    if size >= starts[tier + 1]:
        half = (starts[tier + 2] - starts[tier + 1] - 1) // 2
        return size >= starts[tier + 1] + min(ceil(starts[tier + 1] * margin / 100), half)
    half = (starts[tier] - starts[tier - 1] - 1) // 2
    return size < starts[tier] - min(ceil(starts[tier] * margin / 100), half)


def model(ranges: Ranges, how: Smoothing, load: Sequence[int]) -> list[int]:
    """K of each step by the rule in SmoothedPolicy's docstring, from the whole history."""
    table = [Lookup.of(ranges)(size) for size in load]
    settle = max(SETTLE_STEPS, how.dwell_steps)
    tokens = [table[0]]
    agreed = load[0]
    for step in range(1, len(load)):
        held = tokens[-1]
        if table[step] == held:
            agreed = load[step]
            tokens.append(held)
            continue
        recent = changes(tokens)
        dwelt = not recent or step - recent[-1] >= how.dwell_steps
        settled = (
            step >= settle
            and all(k != held for k in table[step - settle : step])
            and tokens[-settle:] == ([held] * settle)
        )
        if dwelt and (settled or beyond(ranges, how.margin_percent, agreed, load[step])):
            agreed = load[step]
            tokens.append(table[step])
        else:
            tokens.append(held)
    return tokens


@given(SCHEDULES, LOADS)
def test_off_is_exactly_the_table(ranges: Ranges, load: list[int]) -> None:
    table = [Lookup.of(ranges)(size) for size in load]
    for how in (None, smoothing()):
        assert isinstance(policy_of(ranges, how), TablePolicy)
        assert run(ranges, how, load) == table
    off = SmoothedPolicy(ranges, smoothing())
    assert [off.choose(size, None) for size in load] == table


@given(SCHEDULES, smoothings(), LOADS)
def test_the_rule_is_the_one_in_the_docstring(ranges: Ranges, how: Smoothing, load: list[int]) -> None:
    assert run(ranges, how, load) == model(ranges, how, load)


@given(SCHEDULES, smoothings(), LOADS)
def test_k_is_the_tables_of_this_step_or_stays(ranges: Ranges, how: Smoothing, load: list[int]) -> None:
    table, smoothed = run(ranges, None, load), run(ranges, how, load)
    assert smoothed[0] == table[0]
    assert all(smoothed[step] == table[step] for step in changes(smoothed))


@given(SCHEDULES, smoothings(), LOADS)
def test_never_more_changes_than_the_table(ranges: Ranges, how: Smoothing, load: list[int]) -> None:
    assert len(changes(run(ranges, how, load))) <= len(changes(run(ranges, None, load)))


@given(SCHEDULES, smoothings(), LOADS)
def test_dwell_bounds_the_changes(ranges: Ranges, how: Smoothing, load: list[int]) -> None:
    found = changes(run(ranges, how, load))
    assert all(later - earlier >= how.dwell_steps for earlier, later in pairwise(found))
    assert len(found) <= ceil((len(load) - 1) / max(how.dwell_steps, 1))


@given(SCHEDULES, smoothings(), LOADS, st.integers(1, 2000))
def test_a_constant_batch_size_ends_at_the_tables_k(ranges: Ranges, how: Smoothing, load: list[int], size: int) -> None:
    bound = max(SETTLE_STEPS, how.dwell_steps)
    tokens = run(ranges, how, [*load, *[size] * (bound + 5)])[len(load) :]
    assert set(tokens[bound:]) == {Lookup.of(ranges)(size)}


@given(SCHEDULES, smoothings(), LOADS, st.data())
def test_a_jump_beyond_every_margin_waits_for_the_dwell_only(
    ranges: Ranges, how: Smoothing, load: list[int], data: st.DataObject
) -> None:
    edges = [1, *boundaries(ranges), 10_000]
    middles = [(start + end) // 2 for start, end in pairwise(edges)]
    size = data.draw(st.sampled_from(middles))
    tokens = run(ranges, how, [*load, *[size] * (how.dwell_steps + 1)])[len(load) :]
    assert tokens[-1] == Lookup.of(ranges)(size)
    if not changes(run(ranges, how, load)):
        assert tokens[0] == Lookup.of(ranges)(size)


@given(SCHEDULES, st.integers(1, 50), st.data())
def test_hovering_within_a_margin_changes_nothing(ranges: Ranges, margin: int, data: st.DataObject) -> None:
    edges = boundaries(ranges)
    if not edges:
        return
    start = data.draw(st.sampled_from(edges))
    below = [size for size in range(1, start) if not beyond(ranges, margin, start, size)]
    load = [size for low in below for size in (start, low)] * 3
    assert changes(run(ranges, smoothing(margin=margin), load)) == []


@pytest.mark.parametrize(
    ("margin", "held", "leaves"),
    [(10, 64, 72), (10, 128, 142), (10, 65, 57), (10, 129, 115), (0, 64, 65), (0, 65, 64), (50, 64, 96), (1, 64, 66)],
)
def test_the_margin_is_in_percent_of_the_boundary(margin: int, held: int, leaves: int) -> None:
    """`leaves` is the first size at which a step that follows `held` takes another K."""
    toward = 1 if leaves > held else -1
    assert run(SEED, smoothing(margin=margin), [held, leaves])[1] == Lookup.of(SEED)(leaves)
    stays = leaves - toward
    assert run(SEED, smoothing(margin=margin), [held, stays])[1] == Lookup.of(SEED)(held)


def test_a_single_batch_size_is_never_within_a_margin() -> None:
    """A range [1, 1] has the batch size where speculation earns most."""
    ranges = from_triples([(1, 1, 5), (2, 64, 1)])
    assert run(ranges, smoothing(margin=50), [2, 1]) == [1, 5]


def test_a_boundary_between_equal_ks_is_none() -> None:
    ranges = from_triples([(1, 8, 3), (9, 16, 3), (17, 64, 1)])
    assert run(ranges, smoothing(margin=10), [8, 18, 19]) == [3, 3, 1]


def test_the_first_step_takes_the_tables_k_and_does_not_count_as_a_change() -> None:
    assert run(SEED, smoothing(dwell=50), [100, 200]) == [1, 0]


def test_dwell_delays_the_change_after_a_change() -> None:
    assert run(SEED, smoothing(dwell=3), [1, 100, 1, 1, 1]) == [3, 1, 1, 1, 3]


@pytest.mark.parametrize(("dwell", "settle"), [(0, SETTLE_STEPS), (SETTLE_STEPS + 50, SETTLE_STEPS + 50)])
def test_settling_takes_its_steps_in_a_row(dwell: int, settle: int) -> None:
    how = smoothing(dwell, margin=10)
    assert run(SEED, how, [64, *[65] * (settle + 1)])[-2:] == [3, 1]
    assert run(SEED, how, [64, *[65] * settle, 64, *[65] * settle])[-1] == 3


def test_engines_do_not_share_what_they_hold() -> None:
    one, other = (policy_of(SEED, smoothing(dwell=100)) for _ in range(2))
    assert [one.choose(b, None) for b in (1, 100, 1)] == [3, 1, 1]
    assert other.choose(1, None) == 3
