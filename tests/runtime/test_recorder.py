"""What the scheduler mixin sets and records, with outputs of the shape that vLLM's have."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import scheduler
from dsd_runtime.outcome import StepOutcome
from dsd_runtime.schedule import Lookup, Ranges
from dsd_runtime.scheduler import DsdSchedulerMixin, StepRecorder, derive
from tests.runtime.examples import envelope, ranges


class Runtime:
    """Stands where EngineRuntime does: a table, and a list of what was observed."""

    def __init__(self, table: Ranges) -> None:
        self.envelope = envelope()
        self.table = table
        self.seen: list[StepOutcome] = []

    def choose(self, batch_size: int) -> int:
        """K of the table."""
        return Lookup.of(self.table)(batch_size)

    def static_table(self) -> list[int]:
        """A list that is easy to recognise."""
        return [0, 3]

    def observe(self, step: StepOutcome) -> None:
        """Remember."""
        self.seen.append(step)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is one second later."""
    ticks: Iterator[int] = iter(range(1000))
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))


def output(prefill: int = 0, decode: int = 0, resumed: int = 0, tokens: int = 1) -> Any:
    """A SchedulerOutput with so many requests of each kind."""
    names = [f"d{i}" for i in range(decode)] + [f"r{i}" for i in range(resumed)]
    return SimpleNamespace(
        num_scheduled_tokens=dict.fromkeys([*names, *(f"p{i}" for i in range(prefill))], tokens),
        num_spec_tokens_to_schedule=4,
        scheduled_new_reqs=[f"p{i}" for i in range(prefill)],
        scheduled_cached_reqs=SimpleNamespace(
            num_output_tokens=[5] * len(names), resumed_req_ids={f"r{i}" for i in range(resumed)}
        ),
    )


def handed_out(tokens: int) -> Any:
    """What update_from_output returns when one client gets so many tokens."""
    return {0: SimpleNamespace(outputs=[SimpleNamespace(new_token_ids=[1] * tokens)])}


def run(recorder: StepRecorder, step: Any, drafts: list[tuple[int, int]] | None = None, idle: bool = False) -> None:
    """Schedule and finish one step."""
    recorder.scheduled(step)
    recorder.begin(step)
    for drafted, accepted in drafts or []:
        recorder.drafts(drafted, accepted)
    recorder.finished(handed_out(7), lambda: not idle)


def new(*triples: tuple[int, int, int]) -> tuple[StepRecorder, Runtime]:
    """A recorder with a table."""
    runtime = Runtime(ranges(*triples))
    return StepRecorder(runtime), runtime  # type: ignore[arg-type]


def test_k_of_the_batch_size_is_set() -> None:
    recorder, _ = new((1, 2, 3), (3, 16, 1))
    for size, k in ((1, 3), (2, 3), (3, 1), (200, 1)):
        step = output(decode=size)
        recorder.scheduled(step)
        assert step.num_spec_tokens_to_schedule == k


def test_empty_steps_are_left_alone() -> None:
    recorder, runtime = new((1, 16, 1))
    step = output()
    run(recorder, step)
    assert step.num_spec_tokens_to_schedule == 4
    assert runtime.seen == []


@pytest.mark.usefixtures("clock")
def test_verified_k_is_the_one_chosen_before() -> None:
    recorder, runtime = new((1, 1, 3), (2, 16, 1))
    for step in (output(prefill=1), output(decode=1), output(decode=2), output(decode=2)):
        run(recorder, step)
    assert [(s.chosen, s.verified) for s in runtime.seen] == [(3, 0), (3, 3), (1, 3), (1, 1)]
    assert [s.seconds for s in runtime.seen] == [None, 1, None, 1]


@pytest.mark.usefixtures("clock")
def test_prefill_has_no_price() -> None:
    recorder, runtime = new((1, 16, 2))
    steps = [output(decode=1), output(decode=1, prefill=1), output(decode=1, resumed=1), output(decode=1, tokens=6)]
    for step in [*steps, output(decode=1)]:
        run(recorder, step)
    assert [s.seconds for s in runtime.seen] == [None, None, None, None, 1]


@pytest.mark.usefixtures("clock")
def test_idle_time_is_nobodys() -> None:
    recorder, runtime = new((1, 16, 2))
    run(recorder, output(decode=1))
    run(recorder, output(decode=1), idle=True)
    run(recorder, output(decode=1))
    assert [s.seconds for s in runtime.seen] == [None, 1, None]


@pytest.mark.usefixtures("clock")
def test_a_pause_is_nobodys() -> None:
    """Requests stay in the queue while the weights of the model are replaced, so no idle time is seen."""
    engine: Any = derive(Base)()
    engine.dsd, runtime = new((1, 16, 2))
    for change in (None, None, "PAUSED_ALL", None):
        if change:
            engine.set_pause_state(change)
            engine.set_pause_state("UNPAUSED")
        run(engine.dsd, output(decode=1))
    assert [s.seconds for s in runtime.seen] == [None, 1, None, 1]
    assert engine.paused == ["PAUSED_ALL", "UNPAUSED"]


def test_drafts_by_position() -> None:
    recorder, runtime = new((1, 16, 3))
    run(recorder, output(decode=3), [(3, 2), (2, 0), (3, 3)])
    (step,) = runtime.seen
    assert (step.draft_tokens, step.accepted_tokens, step.emitted_tokens) == (8, 5, 7)
    assert step.draft_tokens_per_pos == (3, 3, 2, 0)
    assert step.accepted_tokens_per_pos == (2, 2, 1, 0)


def test_steps_in_flight_are_matched_to_their_outputs() -> None:
    """Asynchronous scheduling: the next step is scheduled before this one's output is there; one is lost."""
    recorder, runtime = new((1, 1, 3), (2, 2, 2), (3, 16, 0))
    steps = [output(decode=size) for size in (1, 2, 3)]
    for step in steps:
        recorder.scheduled(step)
    for step in (steps[0], steps[2]):
        recorder.begin(step)
        recorder.finished(handed_out(1), lambda: True)
    assert [(s.batch_size, s.chosen, s.verified) for s in runtime.seen] == [(1, 3, 0), (3, 0, 2)]


def test_step_without_requests_loses_no_other() -> None:
    """Asynchronous scheduling: where nothing can go on yet, an empty step is in flight between two others."""
    recorder, runtime = new((1, 16, 3))
    first, empty, last = output(decode=1), output(), output(decode=2)
    recorder.scheduled(first)
    recorder.scheduled(empty)
    recorder.begin(first)
    recorder.finished(handed_out(1), lambda: True)
    recorder.scheduled(last)
    for step in (empty, last):
        recorder.begin(step)
        if step is last:
            recorder.drafts(3, 1)
        recorder.finished(handed_out(1), lambda: True)
    assert [(s.batch_size, s.draft_tokens) for s in runtime.seen] == [(1, 0), (2, 3)]


def test_impossible_k_raises() -> None:
    recorder, runtime = new((1, 16, 1))
    runtime.table = ranges((1, 16, 5))
    with pytest.raises(ValueError, match="K=5"):
        recorder.scheduled(output(decode=1))


class Base:
    """Stands where vLLM's scheduler does."""

    def __init__(self) -> None:
        self.scheduled: list[int] = []
        self.paused: list[str] = []

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        self.scheduled.append(scheduler_output.num_spec_tokens_to_schedule)

    def set_pause_state(self, pause_state: str) -> None:
        """Remember."""
        self.paused.append(pause_state)

    def update_from_output(self, *arguments: Any) -> Any:
        """Hand back what came in."""
        return arguments


def test_failure_of_ours_leaves_the_engine_with_the_schedule_as_a_static_table() -> None:
    engine: Any = derive(Base)()
    assert engine.dsd is None, "what Base lacks must not end the engine either"
    engine.dsd, runtime = new((1, 16, 1))
    engine._update_after_schedule(output(decode=1))
    runtime.table = ranges((1, 16, 5))
    engine._update_after_schedule(output(decode=1))
    engine._update_after_schedule(output(decode=1))
    assert engine.scheduled == [1, 4, 4]
    assert engine.dsd is None
    assert engine.dynamic_sd_lookup == [0, 3]


def test_failure_that_leaves_no_table_does_not_end_the_engine() -> None:
    engine: Any = derive(Base)()
    engine.dsd, _ = new((1, 16, 1))
    engine.dsd.runtime = None
    engine._update_after_schedule(output(decode=1))
    assert engine.scheduled == [4]
    assert engine.dsd is None


def test_refused_engine_says_so_in_its_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(scheduler, "show_off", shown.append)
    stand_in = SimpleNamespace(refusal=lambda _: "why not", identity=lambda _: {"engine": "3"})
    monkeypatch.setattr(scheduler, "resolved", stand_in)
    engine: Any = derive(type("Configured", (Base,), {"vllm_config": None}))()
    assert engine.dsd is None
    assert shown == [{"engine": "3"}]


def test_failure_while_counting_leaves_the_outputs_alone() -> None:
    engine: Any = derive(Base)()
    engine.dsd, _ = new((1, 16, 1))
    engine.dsd.begin = engine.dsd.finished = None
    assert engine.update_from_output("step", "output") == ("step", "output")
    assert engine.dsd is None


def test_mixin_goes_in_front_once() -> None:
    derived = derive(Base)
    assert issubclass(derived, Base)
    assert derived.__mro__[1] is DsdSchedulerMixin
    assert derive(derived) is derived
