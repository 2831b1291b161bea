"""What the scheduler mixin sets and records, with outputs of the shape that vLLM's have."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import resolved, scheduler
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
        self.flushed: list[int] = []

    def choose(self, batch_size: int) -> int:
        """K of the table."""
        return Lookup.of(self.table)(batch_size)

    def static_table(self) -> list[int]:
        """A list that is easy to recognise."""
        return [0, 3]

    def observe(self, step: StepOutcome) -> None:
        """Remember."""
        self.seen.append(step)

    def flush(self) -> None:
        """Remember how much had been seen."""
        self.flushed.append(len(self.seen))

    def close(self) -> None:
        """It ends with a flush."""
        self.flush()


class Requests(dict[str, Any]):
    """vLLM's requests: those whose name begins with a c are in the middle of their prefill."""

    def __missing__(self, name: str) -> Any:
        return SimpleNamespace(is_prefill_chunk=name.startswith("c"))


def output(prefill: int = 0, decode: int = 0, resumed: int = 0, chunks: int = 0) -> Any:
    """A SchedulerOutput with so many requests of each kind."""
    names = [f"d{i}" for i in range(decode)] + [f"r{i}" for i in range(resumed)] + [f"c{i}" for i in range(chunks)]
    return SimpleNamespace(
        num_scheduled_tokens=dict.fromkeys([*names, *(f"p{i}" for i in range(prefill))], 1),
        num_spec_tokens_to_schedule=4,
        scheduled_cached_reqs=SimpleNamespace(req_ids=names, resumed_req_ids={f"r{i}" for i in range(resumed)}),
    )


def handed_out(tokens: int, drafts: Sequence[tuple[int, int]] = ()) -> Any:
    """What update_from_output returns when one client gets so many tokens, with vLLM's statistics of the drafts."""
    stats = SimpleNamespace(
        num_draft_tokens_per_pos=[sum(n > i for n, _ in drafts) for i in range(4)],
        num_accepted_tokens_per_pos=[sum(n > i for _, n in drafts) for i in range(4)],
    )
    one = SimpleNamespace(new_token_ids=[1] * tokens)
    of_step = SimpleNamespace(spec_decoding_stats=stats if drafts else None)
    return {
        1: SimpleNamespace(outputs=[], scheduler_stats=None),
        0: SimpleNamespace(outputs=[one], scheduler_stats=of_step),
    }


def run(recorder: StepRecorder, step: Any, drafts: Sequence[tuple[int, int]] = (), idle: bool = False) -> None:
    """Schedule and finish one step."""
    recorder.scheduled(step, Requests())
    recorder.begin(step)
    recorder.finished(handed_out(7, drafts), not idle)


def new(*triples: tuple[int, int, int]) -> tuple[StepRecorder, Runtime]:
    """A recorder with a table, and a clock that is a second later at each look."""
    runtime = Runtime(ranges(*triples))
    return StepRecorder(runtime, itertools.count().__next__), runtime  # type: ignore[arg-type]


def test_k_of_the_batch_size_is_set() -> None:
    recorder, _ = new((1, 2, 3), (3, 16, 1))
    for size, k in ((1, 3), (2, 3), (3, 1), (200, 1)):
        step = output(decode=size)
        recorder.scheduled(step, Requests())
        assert step.num_spec_tokens_to_schedule == k


def test_empty_steps_are_left_alone() -> None:
    recorder, runtime = new((1, 16, 1))
    step = output()
    run(recorder, step)
    assert step.num_spec_tokens_to_schedule == 4
    assert runtime.seen == []


def test_verified_k_is_the_one_chosen_before() -> None:
    recorder, runtime = new((1, 1, 3), (2, 16, 1))
    for step in (output(prefill=1), output(decode=1), output(decode=2), output(decode=2)):
        run(recorder, step)
    assert [(s.chosen, s.verified) for s in runtime.seen] == [(3, 0), (3, 3), (1, 3), (1, 1)]
    assert [s.seconds for s in runtime.seen] == [None, 1, None, 1]


def test_prefill_has_no_price() -> None:
    recorder, runtime = new((1, 16, 2))
    steps = [output(decode=1), output(decode=1, prefill=1), output(decode=1, resumed=1), output(decode=1, chunks=1)]
    for step in [*steps, output(decode=1)]:
        run(recorder, step)
    assert [s.seconds for s in runtime.seen] == [None, None, None, None, 1]


def test_resumed_requests_alone_verify_nothing() -> None:
    recorder, runtime = new((1, 16, 2))
    for step in (output(decode=1), output(resumed=2), output(chunks=1), output(decode=1, resumed=1)):
        run(recorder, step)
    assert [s.verified for s in runtime.seen] == [0, 0, 0, 2]


def test_counts_are_shown_at_once_where_the_engine_falls_idle() -> None:
    recorder, runtime = new((1, 16, 2))
    for step, idle in ((output(decode=1), False), (output(decode=1), True), (output(), True)):
        run(recorder, step, idle=idle)
    recorder.interrupted()
    assert runtime.flushed == [2, 2, 2]


def test_idle_time_is_nobodys() -> None:
    recorder, runtime = new((1, 16, 2))
    run(recorder, output(decode=1))
    run(recorder, output(decode=1), idle=True)
    run(recorder, output(decode=1))
    assert [s.seconds for s in runtime.seen] == [None, 1, None]


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
        recorder.scheduled(step, Requests())
    for step in (steps[0], steps[2]):
        recorder.begin(step)
        recorder.finished(handed_out(1), True)
    assert [(s.batch_size, s.chosen, s.verified) for s in runtime.seen] == [(1, 3, 0), (3, 0, 2)]


def test_step_without_requests_loses_no_other() -> None:
    """Asynchronous scheduling: where nothing can go on yet, an empty step is in flight between two others."""
    recorder, runtime = new((1, 16, 3))
    first, empty, last = output(decode=1), output(), output(decode=2)
    recorder.scheduled(first, Requests())
    recorder.scheduled(empty, Requests())
    recorder.begin(first)
    recorder.finished(handed_out(1), True)
    recorder.scheduled(last, Requests())
    for step, drafts in ((empty, []), (last, [(3, 1)])):
        recorder.begin(step)
        recorder.finished(handed_out(1, drafts), True)
    assert [(s.batch_size, s.draft_tokens) for s in runtime.seen] == [(1, 0), (2, 3)]


def test_impossible_k_raises() -> None:
    recorder, runtime = new((1, 16, 1))
    runtime.table = ranges((1, 16, 5))
    with pytest.raises(ValueError, match="K=5"):
        recorder.scheduled(output(decode=1), Requests())


class Base:
    """Stands where vLLM's scheduler does."""

    def __init__(self) -> None:
        self.requests = Requests()
        self.scheduled: list[int] = []
        self.paused: list[str] = []

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        self.scheduled.append(scheduler_output.num_spec_tokens_to_schedule)

    def has_unfinished_requests(self) -> bool:
        """Always busy."""
        return True

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


@pytest.fixture
def shown_off(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The engines whose metrics say that the plugin is off."""
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(scheduler, "show_off", shown.append)
    stand_in = SimpleNamespace(refusal=lambda _: "why not", identity=lambda _: {"engine": "3"})
    monkeypatch.setattr(scheduler, "resolved", stand_in)
    return shown


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("ranges: [{startBatchSize: 1, endBatchSize: 2, numSpeculativeTokens: 3}]", [3, 3, 3, 3, 3]),
        ("ranges: [{startBatchSize: 1, endBatchSize: 2, numSpeculativeTokens: 5}]", None),
        ("ranges: [", None),
    ],
)
def test_plugin_that_cannot_start_leaves_the_file_as_a_static_table_and_never_the_superset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, table: list[int] | None
) -> None:
    (tmp_path / "config.yaml").write_text(file)
    monkeypatch.setenv("DSD_CONFIG", str(tmp_path / "config.yaml"))
    monkeypatch.setattr(resolved, "verdict", lambda _: SimpleNamespace(allowed=(0, 1, 2, 3, 4)))
    config = SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=4), scheduler_config=SimpleNamespace(max_num_seqs=4)
    )
    started = type("Started", (Base,), {"vllm_config": config, "dynamic_sd_lookup": [4, 0, 1, 2, 3]})
    engine: Any = derive(started)()
    assert engine.dsd is None, "this config lacks what the plugin needs to start"
    assert engine.dynamic_sd_lookup == table


def test_plugin_that_cannot_start_leaves_vllm_alone_where_there_is_no_config_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DSD_CONFIG", raising=False)
    engine: Any = derive(type("Started", (Base,), {"vllm_config": None, "dynamic_sd_lookup": [4, 2]}))()
    assert engine.dynamic_sd_lookup == [4, 2]


CONFIGURED = type("Configured", (Base,), {"vllm_config": None})


def test_refused_engine_says_so_in_its_metrics(shown_off: list[dict[str, str]]) -> None:
    engine: Any = derive(CONFIGURED)()
    assert engine.dsd is None
    assert shown_off == [{"engine": "3"}]


def test_engine_that_lost_the_plugin_says_so_in_its_metrics(shown_off: list[dict[str, str]]) -> None:
    engine: Any = derive(CONFIGURED)()
    shown_off.clear()
    engine.dsd, runtime = new((1, 16, 1))
    engine.dsd.begin = None
    engine.update_from_output("step", "output")
    assert shown_off == [{"engine": "3"}]
    assert runtime.flushed == [0], "what was counted before is shown"


def test_engine_that_could_not_start_the_plugin_says_so_in_its_metrics(
    shown_off: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "EngineRuntime", None)
    monkeypatch.setattr("dsd_runtime.scheduler.resolved.refusal", lambda _: None)
    engine: Any = derive(CONFIGURED)()
    assert engine.dsd is None
    assert shown_off == [{"engine": "3"}]


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
