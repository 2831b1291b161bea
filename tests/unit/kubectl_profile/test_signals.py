"""Signals while a schedule of ours is in force."""

import os
import signal

import pytest

from kubectl_dsd.profile.signals import SIGNALS, Interrupted, Signals


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_interrupts_and_the_next_ones_only_tell(number: signal.Signals) -> None:
    told: list[str] = []
    before = [signal.getsignal(each) for each in SIGNALS]

    with Signals(lambda: told.append("busy")) as signals:
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    assert told == ["busy", "busy"]
    assert signals.number == number
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_shield_only_remembers() -> None:
    with Signals(lambda: None) as signals:
        signals.shield()
        os.kill(os.getpid(), signal.SIGINT)

    assert signals.number == signal.SIGINT
