"""Why an engine ended: the runtime's word, the words themselves, or how long it took."""

from typing import Any

import pytest

from dsd_operator.status.crashes import last_lines
from dsd_operator.status.pods import fault_of
from dsd_operator.status.reasons import Reason
from dsd_runtime.causes import KNOWN
from tests.unit.status.cluster import pod, waiting

PROBE = {"periodSeconds": 5, "failureThreshold": 6}


def crashed(name: str = "engine", **ended: Any) -> dict[str, Any]:
    """A pod whose container ended, with the startup probe that we render for 30 seconds."""
    last = {"exitCode": 1, "reason": "Error", **ended}
    made = pod(ready=False, containerStatuses=[waiting(name, "CrashLoopBackOff", "back-off", last)])
    made["spec"] = {"containers": [{"name": "engine", "startupProbe": PROBE}], "terminationGracePeriodSeconds": 60}
    return made


def reason(thing: dict[str, Any]) -> Reason:
    fault = fault_of(thing)
    assert fault is not None
    return fault.reason


def test_every_cause_has_a_reason() -> None:
    assert {cause.reason for cause in KNOWN} <= {found.value for found in Reason}


def test_the_runtimes_word_counts_and_is_not_shown() -> None:
    fault = fault_of(crashed(message="dsd-cause: ModelNotFound\nValueError: words that say nothing\n"))
    assert fault is not None
    assert fault.reason is Reason.MODEL_NOT_FOUND
    assert fault.message == "container engine: exits with code 1: ValueError: words that say nothing"


def test_a_reason_of_a_newer_runtime_leaves_the_words() -> None:
    message = "dsd-cause: FluxCapacitorMissing\n"
    assert reason(crashed(message=message + "ValueError: x")) is Reason.CRASH_LOOP_BACK_OFF
    assert reason(crashed(message=message + "OutOfMemoryError: CUDA out of memory")) is Reason.ENGINE_OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("INFO x\nvllm serve: error: unrecognized arguments: --sed=0", Reason.ENGINE_ARGUMENT_INVALID),
        ("dsd-serve: there is no option --dsd-x; see dsd-serve --help", Reason.ENGINE_ARGUMENT_INVALID),
        ("pydantic_core.ValidationError: 1 validation error for ModelConfig", Reason.ENGINE_ARGUMENT_INVALID),
        ("NotImplementedError: Unsupported speculative method: 'mtp'", Reason.SPECULATION_UNSUPPORTED),
        ("OSError: acme/x is not a local folder and is not a valid model identifier", Reason.MODEL_NOT_FOUND),
        ("ValueError: something that nobody has seen", Reason.CRASH_LOOP_BACK_OFF),
    ],
)
def test_without_its_word_the_words_are_judged(message: str, expected: Reason) -> None:
    assert reason(crashed(message=message)) is expected


def test_what_others_put_in_is_not_judged_as_an_engine() -> None:
    assert reason(crashed("proxy", message="dsd-cause: ModelNotFound\nMemoryError")) is Reason.CRASH_LOOP_BACK_OFF


@pytest.mark.parametrize(
    ("seconds", "code", "expected"),
    [
        (31, 137, Reason.STARTUP_TIMEOUT),
        (95, 137, Reason.STARTUP_TIMEOUT),
        (31, 0, Reason.STARTUP_TIMEOUT),
        (20, 137, Reason.CRASH_LOOP_BACK_OFF),
        (3000, 137, Reason.CRASH_LOOP_BACK_OFF),
        (31, 1, Reason.CRASH_LOOP_BACK_OFF),
    ],
)
def test_an_engine_that_took_too_long(seconds: int, code: int, expected: Reason) -> None:
    end = f"2030-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
    assert reason(crashed(exitCode=code, startedAt="2030-01-01T00:00:00Z", finishedAt=end)) is expected


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2030-01-01T00:00:05Z", Reason.STARTUP_TIMEOUT),  # from before the container's start on
        ("2030-01-01T02:00:00Z", Reason.CRASH_LOOP_BACK_OFF),  # it served, and was ended for its liveness
    ],
)
def test_an_engine_that_was_ready_did_not_take_too_long_however_long_it_may_drain(since: str, expected: Reason) -> None:
    thing = crashed(exitCode=137, startedAt="2030-01-01T00:00:10Z", finishedAt="2030-01-01T02:00:10Z")
    thing["spec"]["terminationGracePeriodSeconds"] = 86435
    thing["status"]["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": since}]
    assert reason(thing) is expected


def test_the_memory_limit_comes_before_the_words() -> None:
    assert reason(crashed(reason="OOMKilled", message="dsd-cause: ModelNotFound\n")) is Reason.OOM_KILLED


def test_the_last_lines_of_a_log() -> None:
    assert last_lines("\n".join(str(i) for i in range(20)) + "\n\n") == "15 | 16 | 17 | 18 | 19"
    assert last_lines("dsd-cause: X\n1") == "1"
    assert last_lines("") == ""
    assert len(last_lines("x" * 100_000)) <= 300
