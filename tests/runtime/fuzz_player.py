"""The process of the swap campaign: a real engine in it, stepped by hand, with another schedule between any two steps.

    python -m tests.runtime.fuzz_player PLANS.json RESULTS.json

Stepped by hand, because a campaign that can be repeated needs every swap at the same step each time. The engine core,
scheduler, worker and models are those of a server; swaps enter by the utility that the PUT route calls and by the
config file. Each plan is played twice, with speculation and without. `test_fuzz_swaps` starts it and compares.
"""

import json
import os
import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.runtime.fuzz_load import KINDS, Job, job
from tests.runtime.fuzz_random import Progress
from tests.runtime.fuzz_swapper import Swapper

MAX_NUM_SEQS = 12
MOST_WAITING = 16
TOKENS_PER_STEP = 64
"""Smaller than most long prompts, so that they come in chunks; LoRA needs MAX_NUM_SEQS × (1 + maximum)."""

STEPS_TO_END = 25
"""About how many steps the requests that are open need to end."""

STRUCTURED_BACKEND = "xgrammar"


@dataclass(frozen=True)
class Plan:
    """What to play. Without `speculative` there is neither speculation nor a swap, and `jobs` says how many requests;
    else the requests go on until there were so many `swaps`. `lora` is an adapter, `blocks` the KV cache's size."""

    seed: int
    model: str
    blocks: int
    lora: str | None = None
    speculative: dict[str, Any] | None = None
    swaps: int = 0
    jobs: int = 0


@dataclass
class Played:
    """What one request answered: the tokens of each of its n outputs, their logprobs, those of the prompt."""

    tokens: dict[int, list[int]] = field(default_factory=dict)
    logprobs: dict[int, list[list[tuple[int, float]]]] = field(default_factory=dict)
    prompt_logprobs: list[list[tuple[int, float]]] | None = None
    aborted: bool = False


def make_engine(plan: Plan) -> Any:
    """A vLLM engine without a process of its own."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    arguments = EngineArgs(
        model=plan.model,
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
        block_size=32,
        num_gpu_blocks_override=plan.blocks,
        max_num_seqs=MAX_NUM_SEQS,
        max_num_batched_tokens=TOKENS_PER_STEP,
        enable_lora=plan.lora is not None,
        max_lora_rank=8,
        distributed_executor_backend="uni",
        speculative_config=plan.speculative,
        disable_log_stats=False,
        structured_outputs_config={"backend": STRUCTURED_BACKEND},
    )
    return LLMEngine.from_engine_args(arguments)


def table(logprobs: Any) -> list[list[tuple[int, float]]]:
    """Logprobs as plain data: for each position (token, logprob), the largest first."""
    return [
        sorted(((token, p.logprob) for token, p in (position or {}).items()), key=lambda pair: -pair[1])
        for position in logprobs
    ]


class Player:
    """Keeps requests coming, steps the engine, and notes what comes out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.before = metrics()
        self.engine = make_engine(plan)
        self.chance = random.Random(plan.seed)
        self.played: list[Played] = []
        self.open: dict[str, Job] = {}
        self.steps = self.chunked = 0
        self.most_wanted = MOST_WAITING

    @property
    def scheduler(self) -> Any:
        """vLLM's scheduler."""
        return self.engine.engine_core.engine_core.scheduler

    def play(self) -> dict[str, Any]:
        """Play the plan; returns what goes to the result file."""
        swapper = Swapper(self.engine.engine_core.engine_core, self.plan.seed) if self.plan.speculative else None
        total = self.plan.swaps if swapper else self.plan.jobs
        progress = Progress(f"fuzz {(self.plan.speculative or {}).get('method', 'no speculation')}", total)
        while self.open or self._more(swapper):
            self._feed(swapper)
            if swapper is not None:
                swapper.swap()
            self._step()
            progress.at(swapper.done if swapper else len(self.played), f"({self.steps} steps)")
        return self._result(swapper)

    def _more(self, swapper: Swapper | None) -> bool:
        """Whether another request must come. Those that are open take some more steps, with a swap before each."""
        if swapper is None:
            return len(self.played) < self.plan.jobs
        due = self.plan.swaps - (STEPS_TO_END if self.open else 0)
        return len(self.played) < len(KINDS) or swapper.done < due

    def _feed(self, swapper: Swapper | None) -> None:
        """The number of requests at once wanders, so that the batch size does."""
        if self.chance.random() < 0.05:
            self.most_wanted = self.chance.choice((1, 2, 4, 8, MOST_WAITING))
        while len(self.open) < self.most_wanted and self._more(swapper):
            self._add(job(self.plan.seed, len(self.played), self.plan.lora is not None))

    def _add(self, request: Job) -> None:
        from vllm.lora.request import LoRARequest

        self.played.append(Played())
        self.open[str(request.number)] = request
        self.engine.add_request(
            str(request.number),
            {"prompt_token_ids": list(request.prompt)},
            self._parameters(request),
            lora_request=LoRARequest("adapter", 1, self.plan.lora) if request.lora else None,
        )

    def _parameters(self, request: Job) -> Any:
        """Without speculation every request tells its logprobs, which show where two tokens are equally good."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        streaming = request.streaming or request.abort_after is not None
        extra = {} if self.plan.speculative else {"logprobs": max(2, request.parameters.get("logprobs", 0))}
        return SamplingParams(
            **(request.parameters | extra),
            output_kind=RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY,
            structured_outputs=StructuredOutputsParams(**request.grammar) if request.grammar else None,
        )

    def _step(self) -> None:
        for output in self.engine.step():
            self._note(output)
        self.steps += 1
        running = self.scheduler.running
        self.chunked += any(0 < r.num_computed_tokens < r.num_prompt_tokens for r in running)

    def _note(self, output: Any) -> None:
        request, played = self.open[output.request_id], self.played[int(output.request_id)]
        for one in output.outputs:
            played.tokens.setdefault(one.index, []).extend(one.token_ids)
            if one.logprobs:
                played.logprobs.setdefault(one.index, []).extend(table(one.logprobs))
        if output.prompt_logprobs is not None and "prompt_logprobs" in request.parameters:
            played.prompt_logprobs = table(output.prompt_logprobs)
        if output.finished:
            del self.open[output.request_id]
        elif self._goes_away(request, played):
            self.engine.abort_request([output.request_id])
            played.aborted = True
            del self.open[output.request_id]

    def _goes_away(self, request: Job, played: Played) -> bool:
        if self.plan.speculative is None or request.abort_after is None:
            return False
        return sum(map(len, played.tokens.values())) >= request.abort_after

    def _result(self, swapper: Swapper | None) -> dict[str, Any]:
        after = metrics()
        return {
            "jobs": len(self.played),
            "steps": self.steps,
            "chunked": self.chunked,
            "played": [vars(played) for played in self.played],
            "swaps": vars(swapper.counts) if swapper else {},
            "plugin": self.scheduler.dsd is not None if swapper else False,
            "counters": {key: value - self.before.get(key, 0) for key, value in after.items()},
        }

    def end(self) -> None:
        """End the engine, so that the next one in this process starts as the first did."""
        from prometheus_client import REGISTRY
        from vllm.distributed import cleanup_dist_env_and_memory
        from vllm.platforms import current_platform

        self.engine.engine_core.shutdown()
        cleanup_dist_env_and_memory()
        # vLLM's CPU kernels stay, and cannot be put in place a second time.
        type(current_platform).register_triton_kernel_overrides = lambda *_: None
        for collector in {c for n, c in REGISTRY._names_to_collectors.items() if n.startswith("dsd_")}:
            REGISTRY.unregister(collector)


def metrics() -> dict[str, float]:
    """Every counter of this process by name and the label k, summed over the other labels."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    found: dict[str, float] = {}
    for family in registry.collect():
        for sample in family.samples:
            key = f"{sample.name} {sample.labels.get('k', '')}".strip()
            found[key] = found.get(key, 0) + sample.value
    return found


def play(plan: Plan) -> dict[str, Any]:
    """Play one plan in an engine of its own."""
    player = Player(plan)
    try:
        return player.play()
    finally:
        player.end()


def play_twice(plan: Plan) -> dict[str, Any]:
    """Play a plan, then the same requests without speculation and with all the memory they want."""
    played = play(plan)
    plain = replace(plan, speculative=None, swaps=0, jobs=played["jobs"], blocks=MAX_NUM_SEQS * 512)
    return {"with": played, "without": play(plain)}


def main() -> None:
    """Play the plans of the first argument, write the results to the second."""
    plans = [Plan(**plan) for plan in json.loads(Path(sys.argv[1]).read_text())]
    Path(sys.argv[2]).write_text(json.dumps([play_twice(plan) for plan in plans]))
    sys.stdout.flush()
    os._exit(0)  # vLLM's own end waits for its watchers' threads now and then


if __name__ == "__main__":
    main()
