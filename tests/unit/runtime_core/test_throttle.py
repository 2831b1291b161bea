"""The throttle: at once, or the last of a burst; nothing that came last is lost."""

import threading

from dsd_runtime.throttle import Throttle


def test_the_first_is_done_at_once() -> None:
    done: list[int] = []
    Throttle(3600).call(lambda: done.append(1))
    assert done == [1]


def test_of_a_burst_the_first_and_the_last_are_done() -> None:
    done: list[int] = []
    last = threading.Event()
    throttle = Throttle(0.2)
    for number in range(1000):
        throttle.call(lambda number=number: done.append(number))  # type: ignore[misc]
    throttle.call(last.set)
    assert last.wait(30)
    assert done[0] == 0
    assert len(done) < 500


def test_a_burst_after_a_burst_ends_with_its_last() -> None:
    last = threading.Event()
    throttle = Throttle(0.05)
    throttle.call(lambda: None)
    throttle.call(last.set)
    assert last.wait(30)
    throttle.call(last.clear)
    throttle.call(last.set)
    assert last.wait(30), "a burst after a burst"
