"""The pause that the API server asks for holds for every request, and for no longer than it asked."""

import pytest

from dsd_operator.cluster.errors import ApiError, Conflict, Retry
from dsd_operator.cluster.pause import LONGEST_SECONDS, Pause
from tests.unit.control.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pause(clock: FakeClock) -> Pause:
    return Pause(clock, lambda: 0.5)


def left(pause: Pause) -> float:
    """Seconds that the caller is told to wait; 0: none."""
    try:
        pause.check()
    except Retry as error:
        return error.delay
    return 0.0


@pytest.mark.parametrize("code", [429, 503])
def test_it_lasts_as_long_as_was_asked(pause: Pause, clock: FakeClock, code: int) -> None:
    assert left(pause) == 0.0
    pause.note(Retry(code, "busy", 10.0))
    clock.advance(4.0)
    assert left(pause) == pytest.approx(6.6)  # the ends are spread over a fifth
    clock.advance(6.0)
    assert left(pause) == 0.0


def test_a_shorter_one_does_not_end_a_longer_one(pause: Pause, clock: FakeClock) -> None:
    pause.note(Retry(429, "busy", 10.0))
    pause.note(Retry(429, "busy", 1.0))
    clock.advance(5.0)
    assert left(pause) > 0


@pytest.mark.parametrize("error", [Retry(500, "one object", 10.0), Retry(429, "no time"), Conflict(409, "changed")])
def test_other_answers_ask_for_none(pause: Pause, error: ApiError) -> None:
    pause.note(error)
    assert left(pause) == 0.0


def test_there_is_an_end(pause: Pause, clock: FakeClock) -> None:
    pause.note(Retry(429, "busy", 1e9))
    clock.advance(LONGEST_SECONDS)
    assert left(pause) == 0.0
