"""Which K is chosen, and the schedule of it: known answers, and what must hold for all samples."""

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_runtime.schedule import Lookup, from_triples, to_triples, validate
from kubectl_dsd.profile.choice import best_schedule, gain, same, schedule_of, verdict, verdicts

CLEAR: Final = {0: [100.0, 101.0, 99.0], 1: [120.0, 121.0, 119.0], 3: [150.0, 151.0, 149.0]}
TIE: Final = {0: [100.0, 101.0, 99.0], 1: [148.0, 151.0, 149.5], 3: [150.0, 150.0, 150.0]}
NOISY: Final = {0: [60.0, 150.0, 70.0], 3: [150.0, 100.0, 110.0]}


def test_a_clear_winner_is_chosen() -> None:
    found = verdict(4, CLEAR)

    assert (found.fastest, found.chosen, found.certainty) == (3, 3, "clear")
    assert "fastest" in found.why()


def test_of_a_tie_the_smaller_k_drafts_less() -> None:
    found = verdict(4, TIE)

    assert (found.fastest, found.chosen, found.ties, found.certainty) == (3, 1, (1,), "tie")
    assert "drafts less" in found.why()


def test_noise_is_no_argument_for_a_k_that_looks_far_slower() -> None:
    found = verdict(4, NOISY)

    assert (found.chosen, found.open, found.certainty) == (3, (0,), "uncertain")
    assert "--rounds" in found.why()


def test_a_tie_that_may_lose_much_is_uncertain() -> None:
    found = verdict(4, {0: [80.0, 150.0, 148.0], 3: [150.0, 140.0, 150.0]})

    assert (found.chosen, found.ties, found.certainty) == (0, (0,), "uncertain")
    assert "too noisy" in found.why()


def test_the_smallest_of_ties_is_the_fastest_itself() -> None:
    found = verdict(4, {1: [150.0, 150.2, 150.1], 3: [149.9, 150.1, 150.1]})

    assert found.chosen == 1
    assert found.certainty == "tie"


def test_a_drift_that_all_share_does_not_hide_the_winner() -> None:
    drifting = {0: [100.0, 60.0, 150.0], 3: [110.0, 66.0, 165.0]}

    assert verdict(1, drifting).certainty == "clear"


def test_a_single_round_is_uncertain() -> None:
    found = verdict(1, {0: [1.0], 3: [2.0]})

    assert (found.chosen, found.certainty) == (3, "uncertain")
    assert "single round" in found.why()


def test_ranges_reach_up_to_each_concurrency_and_are_merged() -> None:
    assert to_triples(schedule_of({1: 3, 2: 3, 4: 1, 8: 0, 16: 0}, 64)) == [[1, 2, 3], [3, 4, 1], [5, 64, 0]]


def test_the_last_range_is_never_shorter_than_what_was_measured() -> None:
    assert to_triples(schedule_of({1: 3, 128: 0}, 64)) == [[1, 1, 3], [2, 128, 0]]


samples = st.integers(2, 5).flatmap(
    lambda rounds: st.dictionaries(
        st.integers(1, 64),
        st.fixed_dictionaries({k: st.lists(st.floats(1, 1000), min_size=rounds, max_size=rounds) for k in (0, 1, 3)}),
        min_size=1,
        max_size=6,
    )
)


@given(samples)
def test_any_samples_give_a_valid_schedule_that_says_what_was_chosen(found: dict[int, dict[int, list[float]]]) -> None:
    judged = verdicts(found)
    schedule = best_schedule(judged, 256)

    assert validate(schedule, 3) == []
    lookup = Lookup.of(schedule)
    assert {c: lookup(c) for c in found} == {v.concurrency: v.chosen for v in judged}
    assert schedule[-1].end_batch_size == 256
    assert all(a.num_speculative_tokens != b.num_speculative_tokens for a, b in pairwise(schedule))


@given(samples)
def test_the_choice_is_never_larger_than_the_fastest_nor_far_slower(found: dict[int, dict[int, list[float]]]) -> None:
    for judged in verdicts(found):
        assert judged.chosen <= judged.fastest
        assert judged.ratios[judged.chosen].middle >= 0.95 or judged.chosen == judged.fastest


def test_the_gain_over_a_worse_schedule_is_known() -> None:
    found = gain({4: CLEAR}, from_triples([(1, 64, 0)]))

    assert found is not None
    assert found.middle == pytest.approx(1.5, rel=0.01)
    assert found.above(1.0)


def test_the_best_schedule_gains_nothing_over_itself() -> None:
    present = from_triples([(1, 64, 3)])

    found = gain({4: CLEAR}, present)

    assert same(present, best_schedule(verdicts({4: CLEAR}), 64), {4: CLEAR})
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)


def test_luck_is_no_gain() -> None:
    """Each K has one lucky round: whoever picks by the same rounds sees a gain that is not there."""
    lucky = {0: [100.0, 100.0, 100.0], 1: [130.0, 98.0, 98.0], 2: [98.0, 130.0, 98.0], 3: [98.0, 98.0, 130.0]}

    found = gain({1: lucky}, from_triples([(1, 64, 0)]))

    assert found is not None
    assert not found.above(1.0)


def test_a_round_is_judged_by_what_the_others_choose() -> None:
    """K=1 looks 30 % faster by its own two good rounds; each of them alone does not show it."""
    found = gain({1: {0: [100.0, 100.0, 100.0], 1: [130.0, 130.0, 70.0]}}, from_triples([(1, 64, 0)]))

    assert found is not None
    assert found.middle == 1.0


def test_no_gain_is_told_where_the_present_k_was_not_measured_or_rounds_are_few() -> None:
    assert gain({4: CLEAR}, from_triples([(1, 64, 2)])) is None
    assert gain({4: {0: [1.0, 1.0], 3: [2.0, 2.0]}}, from_triples([(1, 64, 0)])) is None
