"""`--scheduler-cls` with `dsd-serve`: a class of the user's own is wrapped where it can be, else left alone."""

from typing import Any

import pytest

from dsd_runtime.scheduler import DsdSchedulerMixin, derive


class Scheduler:
    """With the methods inside vLLM's schedulers that the mixin builds on."""

    def _update_after_schedule(self, *_: Any) -> None: ...

    def update_from_output(self, *_: Any) -> None:
        """Of the interface."""

    def set_pause_state(self, *_: Any) -> None:
        """Of the interface."""


class OfTheInterfaceOnly:
    """Implements the interface without vLLM's schedulers."""

    def update_from_output(self, *_: Any) -> None:
        """Of the interface."""


OF_VLLM = type("Scheduler", (Scheduler,), {"__module__": "vllm.v1.core.sched.scheduler"})


def test_vllms_own_is_wrapped_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert derive(OF_VLLM).__mro__[1:3] == (DsdSchedulerMixin, OF_VLLM)
    assert caplog.records == []


def test_a_users_own_is_wrapped_and_named(caplog: pytest.LogCaptureFixture) -> None:
    assert derive(Scheduler).__mro__[1:3] == (DsdSchedulerMixin, Scheduler)
    assert "class Scheduler is not vLLM's" in caplog.text


def test_one_that_cannot_be_wrapped_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """To call what is not there would end the engine with its first step."""
    assert derive(OfTheInterfaceOnly) is OfTheInterfaceOnly
    assert "OfTheInterfaceOnly lacks _update_after_schedule, set_pause_state" in caplog.text
