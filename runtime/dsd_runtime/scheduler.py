"""The scheduler mixin: sets K for each step and records what the step did.

`plugin` puts it in front of whatever scheduler class vLLM chose. It must never end the engine: an error of ours is
logged once and switches the mixin off, and vLLM follows the schedule in use as a static table from then on.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_runtime import resolved
from dsd_runtime.engine import EngineRuntime, static_lookup
from dsd_runtime.metrics import show_off
from dsd_runtime.outcome import StepOutcome

logger = logging.getLogger("vllm.dsd.scheduler")


@dataclass(slots=True)
class PendingStep:
    """A scheduled step whose output has not come back.

    `drafted` and `accepted` are the draft tokens by position, from vLLM's own statistics of the step.
    """

    output: Any
    batch_size: int
    chosen: int
    verified: int
    decode_only: bool
    drafted: Sequence[int] = ()
    accepted: Sequence[int] = ()


class StepRecorder:
    """Sets K when a step is scheduled and makes its StepOutcome when the output is there.

    Several steps may be in flight (asynchronous scheduling); outputs come back in the order of scheduling. Then, too,
    the time from one end to the next is what a step costs: how much later everything is because of it.
    """

    def __init__(self, runtime: EngineRuntime, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock` gives seconds that never go back."""
        self.runtime = runtime
        self.clock = clock
        self._maximum = runtime.envelope.num_speculative_tokens
        self._allowed = frozenset(runtime.envelope.allowed_tokens)
        self._pending: deque[PendingStep] = deque(maxlen=64)
        self._chosen_before = 0
        self._current: PendingStep | None = None
        self._ended: float | None = None

    def scheduled(self, output: Any, requests: Mapping[str, Any]) -> None:
        """Set K in a SchedulerOutput; steps without requests keep vLLM's value, nothing is drafted in them.

        `requests` are vLLM's, as they were before the step.
        """
        batch_size = len(output.num_scheduled_tokens)
        if batch_size == 0:
            return
        chosen = self.runtime.choose(batch_size)
        if chosen not in self._allowed:
            raise ValueError(f"K={chosen} is not possible with this engine")
        output.num_spec_tokens_to_schedule = chosen
        decoding = count_decoding(output, requests)
        verified = self._chosen_before if decoding else 0
        self._pending.append(PendingStep(output, batch_size, chosen, verified, decoding == batch_size))
        self._chosen_before = chosen

    def begin(self, output: Any) -> None:
        """The model's output for a scheduled step is about to be processed.

        It may be one that was not noted, for it has no requests: under asynchronous scheduling vLLM schedules such a
        step where nothing can go on yet, and the step after it before this one's output is there.
        """
        self._current = None
        if any(step.output is output for step in self._pending):
            while self._current is None or self._current.output is not output:
                self._current = self._pending.popleft()

    def make_spec_decoding_stats(
        self,
        spec_decoding_stats: Any,
        num_draft_tokens: int,
        num_accepted_tokens: int,
        num_invalid_spec_tokens: Mapping[str, int] | None,
        request_id: str,
    ) -> Any:
        """Stands in for vLLM's method of this name where `--disable-log-stats` switches that off; same arithmetic."""
        if spec_decoding_stats is None:
            from vllm.v1.spec_decode.metrics import SpecDecodingStats

            spec_decoding_stats = SpecDecodingStats.new(self._maximum)
            self._note_drafts(spec_decoding_stats)
        invalid = (num_invalid_spec_tokens or {}).get(request_id, 0)
        spec_decoding_stats.observe_draft(num_draft_tokens - invalid, num_accepted_tokens)
        return spec_decoding_stats

    def _note_drafts(self, stats: Any) -> None:
        if self._current is not None:
            self._current.drafted = stats.num_draft_tokens_per_pos
            self._current.accepted = stats.num_accepted_tokens_per_pos

    def finished(self, outputs: Mapping[int, Any], busy: bool) -> None:
        """The current step's output is processed: `outputs` goes to the clients, `busy` says whether requests are left.

        What follows an idle time has no price: that step's duration holds the waiting for a request.
        """
        now, ended = self.clock(), self._ended
        self._ended = now if busy else None
        for batch in outputs.values():
            if batch.scheduler_stats is not None and (stats := batch.scheduler_stats.spec_decoding_stats) is not None:
                self._note_drafts(stats)
        step, self._current = self._current, None
        if step is not None:
            priced = ended is not None and step.decode_only and step.chosen == step.verified
            emitted = sum([len(one.new_token_ids) for batch in outputs.values() for one in batch.outputs])
            self.runtime.observe(outcome(step, now - ended if priced and ended is not None else None, emitted))
        if not busy:
            self.runtime.flush()

    def interrupted(self) -> None:
        """The engine is paused or goes on after a pause, with requests that wait: that time is no step's price."""
        self._ended = None
        self.runtime.flush()


def count_decoding(output: Any, requests: Mapping[str, Any]) -> int:
    """How many requests of a SchedulerOutput are past their prefill, before the step.

    A request that was preempted computes its context again, prompt and output, as a prefill.
    """
    cached = output.scheduled_cached_reqs
    resumed = cached.resumed_req_ids
    return sum([not requests[name].is_prefill_chunk and name not in resumed for name in cached.req_ids])


def outcome(step: PendingStep, seconds: float | None, emitted_tokens: int) -> StepOutcome:
    """Sum up one step."""
    return StepOutcome(
        batch_size=step.batch_size,
        chosen=step.chosen,
        verified=step.verified,
        seconds=seconds,
        emitted_tokens=emitted_tokens,
        draft_tokens=sum(step.drafted),
        accepted_tokens=sum(step.accepted),
        draft_tokens_per_pos=tuple(step.drafted),
        accepted_tokens_per_pos=tuple(step.accepted),
    )


_BUILT_ON: Final = ("_update_after_schedule", "update_from_output", "set_pause_state")


class DsdSchedulerMixin:
    """Goes in front of a scheduler class of vLLM."""

    dsd: StepRecorder | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        try:
            self.dsd = self._make_recorder()
        except Exception:
            logger.exception("the DSD plugin could not start; the schedule changes only with a restart")
            self._start_static()
            self._say_off()

    def _make_recorder(self) -> StepRecorder | None:
        config = self.vllm_config  # type: ignore[attr-defined]
        reason = resolved.refusal(config)
        if reason is not None:
            logger.warning("the schedule cannot change while this engine runs: %s", reason)
            self._say_off()
            return None
        recorder = StepRecorder(EngineRuntime.of(config))
        if self.dynamic_sd_lookup is None and resolved.config_path() is not None:
            # vLLM takes None for "K never changes" and pads new decodes to the maximum.
            self.dynamic_sd_lookup: list[int] | None = recorder.runtime.static_table()
        if not self.log_stats:  # type: ignore[attr-defined]
            self.make_spec_decoding_stats = recorder.make_spec_decoding_stats
        return recorder

    def _start_static(self) -> None:
        """The start-up table is a superset that exists to prepare every K: it must not be the schedule."""
        table: list[int] | None = None
        try:
            if resolved.config_path() is None:
                return
            table = static_lookup(self.vllm_config)  # type: ignore[attr-defined]
        except Exception:
            logger.exception("the schedule of the config file cannot be used; vLLM drafts the maximum always")
        self.dynamic_sd_lookup = table

    def _safely(self, action: Callable[..., None], *arguments: Any) -> None:
        try:
            action(*arguments)
        except Exception:
            logger.exception("the DSD plugin failed and is off until a restart; the schedule in use stays until then")
            self._give_up()

    def _give_up(self) -> None:
        recorder, self.dsd = self.dsd, None
        if recorder is None:
            return
        try:
            self.dynamic_sd_lookup = recorder.runtime.static_table()
        except Exception:
            logger.exception("the schedule in use cannot stay; vLLM's start-up table decides")
        try:
            recorder.runtime.close()
        except Exception:
            logger.exception("the last counts are lost")
        self._say_off()

    def _say_off(self) -> None:
        """The metrics must not go on saying that the plugin works."""
        try:
            show_off(resolved.identity(self.vllm_config))  # type: ignore[attr-defined]
        except Exception:
            logger.exception("the metrics cannot say that the plugin is off")

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        if self.dsd is not None:
            self._safely(self.dsd.scheduled, scheduler_output, self.requests)  # type: ignore[attr-defined]
        super()._update_after_schedule(scheduler_output)  # type: ignore[misc]

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """Process the model's output, then count the step."""
        if self.dsd is not None:
            self._safely(self.dsd.begin, scheduler_output)
        outputs = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        if self.dsd is not None:
            busy = self.has_unfinished_requests()  # type: ignore[attr-defined]
            self._safely(self.dsd.finished, outputs, busy)
        return outputs

    def set_pause_state(self, pause_state: Any) -> None:
        """vLLM calls this for a pause, as for new weights, and after it."""
        super().set_pause_state(pause_state)  # type: ignore[misc]
        if self.dsd is not None:
            self._safely(self.dsd.interrupted)


def derive(base: type[Any]) -> type[Any]:
    """The class `base` with the mixin in front; as it is where a user's own class lacks what the mixin builds on."""
    if issubclass(base, DsdSchedulerMixin):
        return base
    missing = [name for name in _BUILT_ON if not hasattr(base, name)]
    if missing:
        logger.error("the DSD plugin is off: scheduler class %s lacks %s", base.__qualname__, ", ".join(missing))
        return base
    if not base.__module__.startswith("vllm."):
        logger.warning("scheduler class %s is not vLLM's: if it chooses K, that counts", base.__qualname__)
    return type(f"Dsd{base.__name__}", (DsdSchedulerMixin, base), {})
