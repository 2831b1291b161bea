"""Which schedule replaces which: newer wins, whichever way it comes; refused ones leave everything as it is."""

import sys
import threading

import pytest

from dsd_runtime.policy import SmoothedPolicy, TablePolicy
from dsd_runtime.protocol import Revision
from dsd_runtime.schedule import Ranges, Smoothing, schedule_hash
from dsd_runtime.state import Active, EngineState, Proposal, Result, Source
from tests.runtime.examples import envelope, ranges, revision

START = ranges((1, 16, 4))
A = ranges((1, 4, 3), (5, 16, 1))
B = ranges((1, 16, 2))


def new_state(allowed: tuple[int, ...] | None = None) -> EngineState:
    """A state that has seen nothing yet."""
    return EngineState(envelope(allowed=allowed), {0: "the drafter would crash"}, START, lambda _: None)


def propose(state: EngineState, what: Ranges, number: int | None, source: Source = "http", owner: str = "o") -> Result:
    """Propose, and say what became of it."""
    rev = revision(number, owner) if number is not None else None
    return state.accept(Proposal(what, rev, source)).result


def test_start_schedule_is_in_use() -> None:
    state = new_state()
    assert state.current.ranges == START
    assert state.current.shown.source == "start"


def test_newer_wins_whichever_way_it_comes() -> None:
    state = new_state()
    assert propose(state, A, 5, "file") is Result.APPLIED
    assert propose(state, B, 6, "http") is Result.APPLIED
    assert propose(state, A, 5, "file") is Result.STALE
    assert propose(state, A, 7, "file") is Result.APPLIED
    assert (state.current.ranges, state.current.source) == (A, "file")


def test_same_revision_and_content_is_idempotent() -> None:
    state = new_state()
    propose(state, A, 5, "file")
    before = state.current
    assert propose(state, A, 5, "http") is Result.UNCHANGED
    assert state.current is before


def test_same_revision_with_other_content_is_stale() -> None:
    state = new_state()
    propose(state, A, 5)
    assert propose(state, B, 5) is Result.STALE
    assert propose(state, A, 5, owner="another resource") is Result.STALE
    assert state.current.ranges == A


def smoothed(number: int | None, smoothing: Smoothing | None, source: Source = "http") -> Proposal:
    """A with `smoothing`."""
    return Proposal(A, revision(number) if number is not None else None, source, smoothing=smoothing)


def test_smoothing_is_part_of_the_content() -> None:
    state, how = new_state(), Smoothing(dwell_steps=20)
    assert state.accept(smoothed(5, how)).result is Result.APPLIED
    assert isinstance(state.current.policy, SmoothedPolicy)
    shown = state.current.shown
    assert (shown.smoothing, shown.hash) == (how, schedule_hash(A, how))
    assert state.accept(smoothed(5, how)).result is Result.UNCHANGED
    assert state.accept(smoothed(5, None)).result is Result.STALE
    assert state.accept(smoothed(5, Smoothing(dwell_steps=21))).result is Result.STALE


def test_a_schedule_without_smoothing_turns_it_off() -> None:
    state = new_state()
    state.accept(smoothed(5, Smoothing(margin_percent=10)))
    assert state.accept(smoothed(6, None)).result is Result.APPLIED
    assert isinstance(state.current.policy, TablePolicy)
    assert state.current.shown.dump().keys() == {"revision", "hash", "source", "ranges"}


def test_a_file_without_revision_changes_its_smoothing_alone() -> None:
    state, how = new_state(), Smoothing(dwell_steps=20)
    assert state.accept(smoothed(None, None, "file")).result is Result.APPLIED
    assert state.accept(smoothed(None, how, "file")).result is Result.APPLIED
    assert state.accept(smoothed(None, how, "file")).result is Result.UNCHANGED
    assert state.current.smoothing == how


def test_rolling_back_restores_the_smoothing() -> None:
    state, how = new_state(), Smoothing(dwell_steps=20)
    state.accept(smoothed(5, how))
    state.accept(Proposal(B, revision(6), "http", change="c"))
    assert state.roll_back("c")
    assert (state.current.ranges, state.current.smoothing) == (A, how)


def test_another_resource_takes_over_with_a_higher_number() -> None:
    state = new_state()
    propose(state, A, 100, owner="team-a/demo/old")
    assert propose(state, B, 99, owner="team-a/demo/new") is Result.STALE
    assert propose(state, B, 101, owner="team-a/demo/new") is Result.APPLIED


def test_stale_answer_says_what_is_newest() -> None:
    state = new_state()
    propose(state, A, 100)
    answer = state.accept(Proposal(B, revision(7), "http"))
    assert answer.result is Result.STALE
    assert "100" in answer.text()


@pytest.mark.parametrize(
    ("what", "field"),
    [
        (ranges((1, 16, 5)), "ranges[0].numSpeculativeTokens"),
        (ranges((2, 16, 1)), "ranges[0].startBatchSize"),
        (ranges((1, 8, 1), (8, 16, 0)), "ranges[1].startBatchSize"),
        (ranges((1, 4, 1), (9, 8, 0)), "ranges[1]"),
        ((), "ranges"),
    ],
)
def test_impossible_schedules_change_nothing(what: Ranges, field: str) -> None:
    state = new_state()
    propose(state, A, 5)
    answer = state.accept(Proposal(what, revision(6), "http"))
    assert answer.result is Result.INVALID
    assert field in [p.field for p in answer.problems]
    assert (state.current.ranges, state.current.revision) == (A, revision(5, "o"))
    assert propose(state, B, 6) is Result.APPLIED, "a refused revision may come again with a better schedule"


def test_unsupported_k_is_refused_with_the_reason() -> None:
    state = new_state(allowed=(4,))
    answer = state.accept(Proposal(ranges((1, 8, 4), (9, 16, 0)), revision(1), "http"))
    assert answer.result is Result.INVALID
    assert "would crash" in answer.text()
    assert [p.field for p in answer.problems] == ["ranges[1].numSpeculativeTokens"]


def test_hand_edited_file_counts_as_newer() -> None:
    state = new_state()
    assert propose(state, A, None, "file") is Result.APPLIED
    assert propose(state, A, None, "file") is Result.UNCHANGED
    assert propose(state, B, 3, "http") is Result.APPLIED
    assert propose(state, A, None, "file") is Result.APPLIED
    assert state.current.revision is None


def test_hand_edit_does_not_let_the_number_go_back() -> None:
    state = new_state()
    propose(state, B, 3)
    propose(state, A, None, "file")
    assert propose(state, B, 3) is Result.STALE
    assert propose(state, B, 2) is Result.STALE
    assert propose(state, B, 4) is Result.APPLIED


def test_check_changes_nothing() -> None:
    state = new_state()
    assert state.check(Proposal(A, revision(5), "http")).result is Result.APPLIED
    assert state.current.ranges == START
    assert propose(state, A, 5) is Result.APPLIED


def test_roll_back_undoes_exactly_one_put() -> None:
    state = new_state()
    propose(state, A, 5)
    state.accept(Proposal(B, revision(6), "http", change="six"))
    assert not state.roll_back("another"), "a PUT that changed nothing here has nothing to undo"
    assert state.current.ranges == B
    assert state.roll_back("six")
    assert (state.current.ranges, state.current.revision) == (A, revision(5, "o"))
    assert not state.roll_back("six")
    assert propose(state, B, 6) is Result.APPLIED, "nobody was told that revision 6 is in use, so it may come again"


def test_refused_put_cannot_undo_the_one_before() -> None:
    """Regression: both carried the same revision, and undoing the second removed the first."""
    state = new_state()
    state.accept(Proposal(A, revision(6), "http", change="first"))
    assert state.accept(Proposal(B, revision(6), "http", change="second")).result is Result.STALE
    assert not state.roll_back("second")
    assert state.current.ranges == A


def test_roll_back_leaves_a_newer_schedule_alone() -> None:
    state = new_state()
    state.accept(Proposal(A, revision(5), "http", change="five"))
    propose(state, B, 6, "file")
    assert state.roll_back("five")
    assert (state.current.ranges, state.current.source) == (B, "file")


def put(state: EngineState, what: Ranges, number: int, change: str) -> Result:
    """The PUT `change`."""
    return state.accept(Proposal(what, revision(number, "o"), "http", change=change)).result


@pytest.mark.parametrize("order", [("five", "six"), ("six", "five")])
def test_two_servers_undo_their_puts_in_any_order(order: tuple[str, str]) -> None:
    """Regression: undoing the later one first brought the earlier one back, and nothing took that away again."""
    state = new_state()
    propose(state, A, 4, "file")
    put(state, B, 5, "five")
    put(state, ranges((1, 16, 1)), 6, "six")
    assert [state.roll_back(change) for change in order] == [True, True]
    assert (state.current.ranges, state.current.revision) == (A, revision(4, "o"))
    assert propose(state, B, 5) is Result.APPLIED


def test_undoing_one_of_two_equal_puts_leaves_what_the_other_was_promised() -> None:
    """An operator that repeats its PUT at another server, while the first still waits for an engine core."""
    state = new_state()
    assert put(state, A, 5, "first") is Result.APPLIED
    assert put(state, A, 5, "again") is Result.UNCHANGED
    assert not state.roll_back("first")
    assert state.current.ranges == A
    assert state.roll_back("again")
    assert state.current.ranges == START


def test_put_of_what_the_file_brought_undoes_nothing() -> None:
    state = new_state()
    propose(state, A, 5, "file")
    assert put(state, A, 5, "same") is Result.UNCHANGED
    assert not state.roll_back("same")
    assert state.current.source == "file"


def test_revisions_beyond_the_history_are_not_forgotten() -> None:
    state = new_state()
    for number in range(1, 100):
        assert put(state, ranges((1, 16, number % 4)), number, f"put {number}") is Result.APPLIED
    assert not state.roll_back("put 1")
    undone = [number for number in range(99, 0, -1) if state.roll_back(f"put {number}")]
    assert undone == list(range(99, 84, -1))
    assert propose(state, A, 84) is Result.STALE
    assert propose(state, A, 85) is Result.APPLIED


def test_listener_hears_each_change_once() -> None:
    heard: list[Active] = []
    state = EngineState(envelope(), {}, START, heard.append)
    for number, what in ((5, A), (5, A), (4, B), (6, ranges((1, 9, 99)))):
        propose(state, what, number)
    assert [active.ranges for active in heard] == [START, A]


def test_readers_never_see_a_mixture_and_the_newest_stays() -> None:
    """Two writers race; a reader sees only whole schedules whose revision fits, and the highest number wins."""
    state = new_state()
    old_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        wrong = hammer(state)
    finally:
        sys.setswitchinterval(old_interval)
    assert not wrong
    assert state.current.revision == Revision(owner="o", number=400)


def hammer(state: EngineState) -> list[Active]:
    """Write from two threads and read meanwhile; returns what a reader must not see."""
    writers = [
        threading.Thread(
            target=lambda first=first: [propose(state, ranges((1, 16, n % 5)), n) for n in range(first, 401, 2)]
        )
        for first in (1, 2)
    ]
    for writer in writers:
        writer.start()
    wrong = []
    while any(writer.is_alive() for writer in writers):
        active = state.current
        if active.revision and active.policy.choose(3, None) != active.revision.number % 5:
            wrong.append(active)
    for writer in writers:
        writer.join()
    return wrong
