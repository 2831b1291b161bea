"""The mixin in front of vLLM's own asynchronous scheduler, with a model that guesses.

vLLM schedules asynchronously on GPUs only, so no engine on a CPU gets there. Here the steps go through a batch queue as
in `EngineCore.step_with_batch_queue`, and what the recorder counts is compared with vLLM's own counters.
"""

import random
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsd_runtime.scheduler import DsdSchedulerMixin, StepRecorder, derive
from tests.runtime.examples import ranges
from tests.runtime.test_recorder import Runtime

pytestmark = pytest.mark.engine

MAX_NUM_SEQS = 4
PROMPT = 7
TABLES = [ranges((1, 1, a), (2, 16, b)) for a in (0, 1, 4) for b in (0, 2, 3)]


def configured(model: Path) -> Any:
    """A VllmConfig for asynchronous scheduling, which the CPU's platform switches off again."""
    from vllm.config import CacheConfig, ModelConfig, ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig

    model_config = ModelConfig(model=str(model), dtype="float32", max_model_len=512)
    scheduler = SchedulerConfig(
        max_num_batched_tokens=64,
        max_num_seqs=MAX_NUM_SEQS,
        max_model_len=512,
        enable_chunked_prefill=True,
        is_encoder_decoder=False,
    )
    speculative = SpeculativeConfig(
        method="ngram",
        num_speculative_tokens=4,
        prompt_lookup_max=4,
        num_speculative_tokens_per_batch_size=[(1, MAX_NUM_SEQS, 4)],
        target_model_config=model_config,
        target_parallel_config=ParallelConfig(),
    )
    config = VllmConfig(
        model_config=model_config,
        cache_config=CacheConfig(block_size=16, enable_prefix_caching=False),
        scheduler_config=scheduler,
        speculative_config=speculative,
    )
    config.scheduler_config.async_scheduling = True
    return config


def scheduler_for(config: Any, blocks: int) -> Any:
    """vLLM's AsyncScheduler behind the mixin, with so many blocks of memory."""
    import torch
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    spec = FullAttentionSpec(block_size=16, num_kv_heads=1, head_size=1, dtype=torch.float32)
    memory = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    config.cache_config.num_gpu_blocks = blocks
    return derive(AsyncScheduler)(config, memory, StructuredOutputManager(config), block_size=16, log_stats=True)


class Guesser:
    """Stands where the model does: accepts some of the drafts of each request that is past its prompt."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def run(self, output: Any, requests: dict[str, Any]) -> Any:
        """The ModelRunnerOutput of a step."""
        from vllm.v1.outputs import ModelRunnerOutput

        cached = output.scheduled_cached_reqs
        computed = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        computed |= {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        names = list(output.num_scheduled_tokens)
        sampled = []
        for name in names:
            drafts = len(output.scheduled_spec_decode_tokens.get(name, ()))
            known = requests[name].num_tokens if name in requests else 0
            done = computed[name] + output.num_scheduled_tokens[name] >= known
            sampled.append([9] * (1 + self.random.randint(0, drafts)) if done else [])
        return ModelRunnerOutput(names, {name: i for i, name in enumerate(names)}, sampled)


class Device:
    """A clock, and an accelerator that runs one batch after the other while the host goes on.

    All times are multiples of 1/1024 s, which floats hold exactly.
    """

    def __init__(self) -> None:
        self.now = self.free = 0.0

    def __call__(self) -> float:
        """The host's time."""
        return self.now

    def launch(self, output: Any) -> tuple[float, float]:
        """Queue a batch; when it is ready, and how long it computes. An empty one takes no time."""
        batch = len(output.num_scheduled_tokens)
        cost = (4 + batch + output.num_spec_tokens_to_schedule * batch) / 1024 if batch else 0.0
        self.free = max(self.now, self.free) + cost
        return self.free, cost


class Totals:
    """Sums of what vLLM says of the steps."""

    def __init__(self) -> None:
        self.steps = self.empty = self.resumed = self.drafted = self.accepted = self.emitted = 0

    def add(self, output: Any, results: dict[int, Any]) -> None:
        """Add a step's scheduler output and what went to the clients."""
        self.steps += bool(output.num_scheduled_tokens)
        self.empty += not output.num_scheduled_tokens
        self.resumed += len(output.scheduled_cached_reqs.resumed_req_ids)
        for result in results.values():
            self.emitted += sum(len(one.new_token_ids) for one in result.outputs)
            stats = result.scheduler_stats and result.scheduler_stats.spec_decoding_stats
            if stats:
                self.drafted += stats.num_draft_tokens
                self.accepted += stats.num_accepted_tokens


def request(number: int, tokens: int) -> Any:
    """A request for so many tokens."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    parameters = SamplingParams(max_tokens=tokens, ignore_eos=True)
    parameters.update_from_generation_config({}, eos_token_id=None)
    return Request(f"r{number}", [1] * PROMPT, parameters, None)


def play(scheduler: Any, runtime: Runtime, seed: int, rate: float) -> Totals:
    """Serve 40 requests, `rate` of them arriving per step, two batches in flight, with another schedule for each step
    and an abort now and then."""
    from vllm.v1.request import RequestStatus

    chance, model, totals = random.Random(seed), Guesser(seed), Totals()
    waiting = [request(number, chance.randint(1, 40)) for number in range(40)]
    flying: deque[Any] = deque()
    while waiting or scheduler.has_requests() or flying:
        if waiting and chance.random() < rate:
            scheduler.add_request(waiting.pop())
        runtime.table = chance.choice(TABLES)
        if scheduler.has_requests():
            output = scheduler.schedule()
            flying.appendleft((output, model.run(output, scheduler.requests)))
            if len(flying) < 2 and (output.num_scheduled_tokens or scheduler.has_requests()):
                continue
        elif not flying:
            continue
        if scheduler.requests and chance.random() < 0.02:
            scheduler.finish_requests(chance.choice(sorted(scheduler.requests)), RequestStatus.FINISHED_ABORTED)
        output, answer = flying.pop()
        totals.add(output, scheduler.update_from_output(output, answer))
    return totals


@pytest.mark.parametrize(
    ("blocks", "rate"), [(1000, 0.05), (9, 0.3)], ids=["one by one, with empty steps", "many, with preemptions"]
)
@pytest.mark.parametrize("seed", range(3))
def test_totals_equal_those_of_vllm(
    models: Path, monkeypatch: pytest.MonkeyPatch, seed: int, blocks: int, rate: float
) -> None:
    runtime = Runtime(TABLES[0])
    monkeypatch.setattr(DsdSchedulerMixin, "_make_recorder", lambda _: StepRecorder(runtime))  # type: ignore[arg-type]
    scheduler = scheduler_for(configured(models / "target"), blocks)
    totals = play(scheduler, runtime, seed, rate)
    assert scheduler.dsd is not None, "it never failed"
    assert len(runtime.seen) == totals.steps
    assert sum(s.draft_tokens for s in runtime.seen) == totals.drafted > 0
    assert sum(s.accepted_tokens for s in runtime.seen) == totals.accepted > 0
    assert sum(s.emitted_tokens for s in runtime.seen) == totals.emitted > 0
    if rate < 0.1:
        assert totals.empty > 10
        assert all(s.draft_tokens <= s.verified * s.batch_size for s in runtime.seen)
    else:
        assert totals.resumed > 0


@dataclass
class Interval:
    """From the end of one step, or the beginning, to the end of the next."""

    seconds: float
    cost: float
    latency: float
    batch: int
    queued: bool
    """The batch before it was still computing when this one was scheduled."""

    gap: bool
    """There was idle time or a pause in it."""


def play_timed(scheduler: Any, seed: int) -> list[Interval]:
    """Serve 30 requests with two batches in flight, with waits for the next request and pauses; K changes at times."""
    from vllm.v1.core.sched.interface import PauseState

    chance, model, device = random.Random(seed), Guesser(seed), Device()
    scheduler.dsd.clock = device
    waiting = [request(number, chance.randint(5, 60)) for number in range(30)]
    flying: deque[Any] = deque()
    found: list[Interval] = []
    ended, gap = 0.0, True
    while waiting or scheduler.has_requests() or flying:
        if waiting and (chance.random() < 0.03 or not (scheduler.has_unfinished_requests() or flying)):
            scheduler.add_request(waiting.pop())
        if chance.random() < 0.1:
            scheduler.dsd.runtime.table = chance.choice(TABLES)
        if chance.random() < 0.02:
            scheduler.set_pause_state(PauseState.PAUSED_ALL)
            device.now += 1
            scheduler.set_pause_state(PauseState.UNPAUSED)
            gap = True
        if scheduler.has_requests():
            at, queued = device.now, device.free > device.now
            output = scheduler.schedule()
            flying.appendleft((output, model.run(output, scheduler.requests), at, queued, *device.launch(output)))
            if len(flying) < 2 and (output.num_scheduled_tokens or scheduler.has_requests()):
                continue
        output, answer, at, queued, ready, cost = flying.pop()
        device.now = max(device.now, ready)
        scheduler.update_from_output(output, answer)
        batch = len(output.num_scheduled_tokens)
        found.append(Interval(device.now - ended, cost, device.now - at, batch, queued, gap))
        ended, gap = device.now, not scheduler.has_unfinished_requests()
        if gap and not flying:
            device.now += chance.randint(1, 3)
    assert sum(one.seconds for one in found) == ended, "the intervals are all the time there was"
    return found


@pytest.mark.parametrize("seed", range(3))
def test_price_of_a_step_is_its_throughput_time(models: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With the next batch queued before this one ends, a step costs what it adds: the time from end to end, not the
    time from its scheduling to its end, which is nearly two steps. Every second is priced once or not at all."""
    runtime = Runtime(TABLES[0])
    monkeypatch.setattr(DsdSchedulerMixin, "_make_recorder", lambda _: StepRecorder(runtime))  # type: ignore[arg-type]
    scheduler = scheduler_for(configured(models / "target"), 1000)
    intervals = play_timed(scheduler, seed)
    steps = [one for one in intervals if one.batch]
    assert [one.batch for one in steps] == [seen.batch_size for seen in runtime.seen]
    pairs = list(zip(steps, runtime.seen, strict=True))
    for one, seen in pairs:
        assert seen.seconds in (None, one.seconds), "a step costs the time from end to end or has no price"
        if one.gap:
            assert seen.seconds is None, "waiting and pauses have no price"
    priced = [(one, seen.seconds) for one, seen in pairs if seen.seconds is not None]
    unpriced = sum(one.seconds for one in intervals) - sum(seconds for _, seconds in priced)
    assert unpriced == sum(one.seconds for one, seen in pairs if seen.seconds is None) + sum(
        one.seconds for one in intervals if not one.batch
    )
    queued = [(one, seconds) for one, seconds in priced if one.queued]
    assert len(queued) > 50
    assert all(seconds == one.cost for one, seconds in queued), "what the accelerator computed for it, and nothing else"
    assert sum(one.latency for one, _ in queued) > 1.5 * sum(seconds for _, seconds in queued)
    assert sum(one.gap for one in steps) > 5
