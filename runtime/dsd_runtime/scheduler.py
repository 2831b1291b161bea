"""The scheduler mixin: sets K for each step and records what the step did.

`plugin` puts it in front of whatever scheduler class vLLM chose. It must never end the engine: an error of ours is
logged once and switches the mixin off, and vLLM follows the schedule in use as a static table from then on.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from dsd_runtime import resolved
from dsd_runtime.engine import EngineRuntime
from dsd_runtime.metrics import show_off
from dsd_runtime.outcome import StepOutcome

logger = logging.getLogger("vllm.dsd.scheduler")


@dataclass(slots=True)
class PendingStep:
    """A scheduled step whose output has not come back.

    `drafted[n]` counts the requests that verified n draft tokens, `accepted[n]` those that accepted n.
    """

    output: Any
    batch_size: int
    chosen: int
    verified: int
    decode_only: bool
    drafted: list[int]
    accepted: list[int]


class StepRecorder:
    """Sets K when a step is scheduled and makes its StepOutcome when the output is there.

    Several steps may be in flight (asynchronous scheduling); outputs come back in the order of scheduling.
    """

    def __init__(self, runtime: EngineRuntime) -> None:
        self.runtime = runtime
        self._maximum = runtime.envelope.num_speculative_tokens
        self._allowed = frozenset(runtime.envelope.allowed_tokens)
        self._pending: deque[PendingStep] = deque(maxlen=64)
        self._chosen_before = 0
        self._current: PendingStep | None = None
        self._ended: float | None = None

    def scheduled(self, output: Any) -> None:
        """Set K in a SchedulerOutput; steps without requests keep vLLM's value, nothing is drafted in them."""
        batch_size = len(output.num_scheduled_tokens)
        if batch_size == 0:
            return
        chosen = self.runtime.choose(batch_size)
        if chosen not in self._allowed:
            raise ValueError(f"K={chosen} is not possible with this engine")
        output.num_spec_tokens_to_schedule = chosen
        decoding, decode_only = phases(output, self._maximum)
        verified = self._chosen_before if decoding else 0
        counts = [0] * (self._maximum + 1)
        self._pending.append(PendingStep(output, batch_size, chosen, verified, decode_only, counts, counts.copy()))
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

    def drafts(self, drafted: int, accepted: int) -> None:
        """One request of the current step verified `drafted` tokens."""
        if self._current is not None:
            self._current.drafted[drafted] += 1
            self._current.accepted[accepted] += 1

    def finished(self, outputs: Mapping[int, Any], busy: Callable[[], bool]) -> None:
        """The current step's output is processed: `outputs` goes to the clients, `busy` says whether requests are left.

        What follows an idle time has no price: that step's duration holds the waiting for a request.
        """
        now, ended = time.perf_counter(), self._ended
        self._ended = now if busy() else None
        step, self._current = self._current, None
        if step is None:
            return
        priced = ended is not None and step.decode_only and step.chosen == step.verified
        emitted = sum(len(o.new_token_ids) for batch in outputs.values() for o in batch.outputs)
        self.runtime.observe(outcome(step, now - ended if priced and ended is not None else None, emitted))

    def interrupted(self) -> None:
        """The engine is paused or goes on after a pause, with requests that wait: that time is no step's price."""
        self._ended = None


def phases(output: Any, maximum: int) -> tuple[bool, bool]:
    """(some request is decoding, no request is in its prefill) for a SchedulerOutput.

    A resumed request computes its context again, in one piece or in chunks: more tokens than 1 + `maximum` in one step.
    """
    cached = output.scheduled_cached_reqs
    decoding = any(cached.num_output_tokens)
    decode_only = (
        not output.scheduled_new_reqs
        and not cached.resumed_req_ids
        and all(cached.num_output_tokens)
        and max(output.num_scheduled_tokens.values()) <= 1 + maximum
    )
    return decoding, decode_only


def outcome(step: PendingStep, seconds: float | None, emitted_tokens: int) -> StepOutcome:
    """Sum up one step."""
    drafted, accepted = by_position(step.drafted), by_position(step.accepted)
    return StepOutcome(
        batch_size=step.batch_size,
        chosen=step.chosen,
        verified=step.verified,
        seconds=seconds,
        emitted_tokens=emitted_tokens,
        draft_tokens=sum(drafted),
        accepted_tokens=sum(accepted),
        draft_tokens_per_pos=drafted,
        accepted_tokens_per_pos=accepted,
    )


def by_position(counts: Sequence[int]) -> tuple[int, ...]:
    """From how many requests had n tokens to how many had one at each position."""
    reached = list(accumulate(reversed(counts[1:])))
    return tuple(reversed(reached))


class DsdSchedulerMixin:
    """Goes in front of a scheduler class of vLLM."""

    dsd: StepRecorder | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        try:
            self.dsd = self._make_recorder()
        except Exception:
            logger.exception("the DSD plugin could not start; vLLM's own table decides")

    def _make_recorder(self) -> StepRecorder | None:
        config = self.vllm_config  # type: ignore[attr-defined]
        reason = resolved.refusal(config)
        if reason is not None:
            logger.warning("the schedule cannot change while this engine runs: %s", reason)
            show_off(resolved.identity(config))
            return None
        recorder = StepRecorder(EngineRuntime.of(config))
        if self.dynamic_sd_lookup is None and resolved.config_path() is not None:  # type: ignore[has-type]
            # vLLM takes None for "K never changes" and pads new decodes to the maximum.
            self.dynamic_sd_lookup = recorder.runtime.static_table()
        return recorder

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

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        if self.dsd is not None:
            self._safely(self.dsd.scheduled, scheduler_output)
        super()._update_after_schedule(scheduler_output)  # type: ignore[misc]

    def make_spec_decoding_stats(
        self,
        spec_decoding_stats: Any,
        num_draft_tokens: int,
        num_accepted_tokens: int,
        num_invalid_spec_tokens: dict[str, int] | None,
        request_id: str,
    ) -> Any:
        """vLLM calls this once for each request that had drafts; the counts here are vLLM's own, to the token."""
        if self.dsd is not None and num_draft_tokens:
            invalid = (num_invalid_spec_tokens or {}).get(request_id, 0)
            self._safely(self.dsd.drafts, num_draft_tokens - invalid, num_accepted_tokens)
        return super().make_spec_decoding_stats(  # type: ignore[misc]
            spec_decoding_stats, num_draft_tokens, num_accepted_tokens, num_invalid_spec_tokens, request_id
        )

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """Process the model's output, then count the step."""
        if self.dsd is not None:
            self._safely(self.dsd.begin, scheduler_output)
        outputs = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        if self.dsd is not None:
            self._safely(self.dsd.finished, outputs, self.has_unfinished_requests)  # type: ignore[attr-defined]
        return outputs

    def set_pause_state(self, pause_state: Any) -> None:
        """vLLM calls this for a pause, as for new weights, and after it."""
        super().set_pause_state(pause_state)  # type: ignore[misc]
        if self.dsd is not None:
            self._safely(self.dsd.interrupted)


def derive(base: type[Any]) -> type[Any]:
    """The class `base` with the mixin in front."""
    if issubclass(base, DsdSchedulerMixin):
        return base
    return type(f"Dsd{base.__name__}", (DsdSchedulerMixin, base), {})
