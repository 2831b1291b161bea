"""The scheduler mixin: sets K for each step and records what the step did.

`plugin` puts it in front of whatever scheduler class vLLM chose. It must never end the engine: an error of ours is
logged once and switches the mixin off, and vLLM's own start-up table decides from then on.
"""

import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dsd_runtime import resolved
from dsd_runtime.engine import EngineRuntime
from dsd_runtime.outcome import StepOutcome

logger = logging.getLogger("vllm.dsd.scheduler")


@dataclass(slots=True)
class PendingStep:
    """A scheduled step whose output has not come back; `drafts` holds (drafted, accepted) of each request."""

    output: Any
    batch_size: int
    chosen: int
    verified: int
    decode_only: bool
    drafts: list[tuple[int, int]] = field(default_factory=list)


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
        self._pending.append(PendingStep(output, batch_size, chosen, verified, decode_only))
        self._chosen_before = chosen

    def begin(self, output: Any) -> None:
        """The model's output for a scheduled step is about to be processed."""
        self._current = None
        while self._pending and self._current is None:
            step = self._pending.popleft()
            self._current = step if step.output is output else None

    def drafts(self, drafted: int, accepted: int) -> None:
        """One request of the current step verified `drafted` tokens."""
        if self._current is not None:
            self._current.drafts.append((drafted, accepted))

    def finished(self, emitted_tokens: int, idle: bool) -> None:
        """The current step's output is processed; `idle`: no request is left."""
        now, ended = time.perf_counter(), self._ended
        self._ended = None if idle else now
        step, self._current = self._current, None
        if step is None:
            return
        priced = ended is not None and step.decode_only and step.chosen == step.verified
        self.runtime.observe(outcome(step, now - ended if priced and ended is not None else None, emitted_tokens))


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
    depth = max((drafted for drafted, _ in step.drafts), default=0)
    return StepOutcome(
        batch_size=step.batch_size,
        chosen=step.chosen,
        verified=step.verified,
        seconds=seconds,
        emitted_tokens=emitted_tokens,
        draft_tokens=sum(drafted for drafted, _ in step.drafts),
        accepted_tokens=sum(accepted for _, accepted in step.drafts),
        draft_tokens_per_pos=tuple(sum(d > i for d, _ in step.drafts) for i in range(depth)),
        accepted_tokens_per_pos=tuple(sum(a > i for _, a in step.drafts) for i in range(depth)),
    )


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
            return None
        recorder = StepRecorder(EngineRuntime.of(config))
        if self.dynamic_sd_lookup is None:  # type: ignore[has-type]
            # vLLM takes None for "K never changes" and pads new decodes to the maximum.
            size = config.scheduler_config.max_num_seqs + 1
            self.dynamic_sd_lookup = [max(recorder.runtime.envelope.allowed_tokens)] * size
        return recorder

    def _switch_off(self, error: Exception) -> None:
        logger.error("the DSD plugin failed and is off until a restart; vLLM's own table decides", exc_info=error)
        self.dsd = None

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        if self.dsd is not None:
            try:
                self.dsd.scheduled(scheduler_output)
            except Exception as error:
                self._switch_off(error)
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
            self.dsd.drafts(num_draft_tokens - invalid, num_accepted_tokens)
        return super().make_spec_decoding_stats(  # type: ignore[misc]
            spec_decoding_stats, num_draft_tokens, num_accepted_tokens, num_invalid_spec_tokens, request_id
        )

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """Process the model's output, then count the step."""
        if self.dsd is not None:
            self.dsd.begin(scheduler_output)
        outputs = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        if self.dsd is not None:
            try:
                emitted = sum(len(o.new_token_ids) for batch in outputs.values() for o in batch.outputs)
                self.dsd.finished(emitted, idle=not self.has_unfinished_requests())  # type: ignore[attr-defined]
            except Exception as error:
                self._switch_off(error)
        return outputs


def derive(base: type[Any]) -> type[Any]:
    """The class `base` with the mixin in front."""
    if issubclass(base, DsdSchedulerMixin):
        return base
    return type(f"Dsd{base.__name__}", (DsdSchedulerMixin, base), {})
