"""A real EngineCore in this process, driven step by step: `python -m tests.runtime.hand_driven MODELS < SCRIPT`.

A script is a JSON list of orders, see `Driver`. What comes out is a JSON list, one object per step: what vLLM
scheduled, what its model answered, what went to the clients, when, and every `dsd_` sample after it. Nothing is taken
from our recorder, which `tests.runtime.step_oracle` is to judge.
"""

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from dsd_runtime.multiproc import MULTIPROC_DIR
from tests.runtime.test_metrics import collected

MAX_NUM_SEQS = 8
MAX_TOKENS = 4
BUDGET = 48
"""Tokens per step: longer prompts come in chunks."""

BLOCKS = 14
"""Of 32 tokens: eight long requests do not fit, so some are preempted."""

VOCABULARY = 512
SPECIAL = 7


def settings(folder: Path) -> dict[str, str]:
    """Environment of the process."""
    return {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "DSD_CONFIG": str(folder / "config.yaml"),
        MULTIPROC_DIR: str(folder),
    }


class Clock:
    """Time that passes when it is told to, in fractions that floats hold exactly."""

    now = 1.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


class Driver:
    """Each public method is an order of the script."""

    def __init__(self, models: Path, folder: Path, log_stats: bool) -> None:
        """Start the engine, with our plugin in it."""
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.core import EngineCore
        from vllm.v1.executor import Executor

        from dsd_runtime import plugin

        plugin.register()
        drafter = {"method": "draft_model", "model": str(models / "draft"), "num_speculative_tokens": MAX_TOKENS}
        config = EngineArgs(
            model=str(models / "target"), served_model_name="tiny", dtype="float32", max_model_len=256,
            max_num_seqs=MAX_NUM_SEQS, max_num_batched_tokens=BUDGET, enforce_eager=True, block_size=32,
            enable_prefix_caching=False, num_gpu_blocks_override=BLOCKS, speculative_config=drafter,
        ).create_engine_config()  # fmt: skip
        self.core: Any = EngineCore(config, Executor.get_class(config), log_stats=log_stats)
        self.scheduler: Any = self.core.scheduler
        self.clock = Clock()
        self.scheduler.dsd.clock = self.clock
        self.folder = folder
        self.random = random.Random(5)
        self.records: list[dict[str, Any]] = []
        self.record: dict[str, Any] = {}
        self.revision = 0
        self.paused = False
        self._schedule, self._update = self.scheduler.schedule, self.scheduler.update_from_output
        self.scheduler.schedule, self.scheduler.update_from_output = self._tap_schedule, self._tap_update

    def add(self, name: str, prompt: int, tokens: int, stop: list[int] | None = None) -> None:
        """A request with a random prompt of so many tokens."""
        from vllm.sampling_params import SamplingParams
        from vllm.v1.engine import EngineCoreRequest

        ids = [self.random.randrange(SPECIAL, VOCABULARY) for _ in range(prompt)]
        parameters = SamplingParams(temperature=0, max_tokens=tokens, stop_token_ids=stop or [], ignore_eos=True)
        parameters.update_from_generation_config({}, eos_token_id=None)
        request = EngineCoreRequest(name, ids, None, parameters, None, 0.0, None, None, None)
        self.core.add_request(*self.core.preprocess_add_request(request))

    def abort(self, name: str) -> None:
        """Abort a request between two steps."""
        self.core.abort_requests([name])

    def abort_in_flight(self, name: str) -> None:
        """Abort a request while the model runs the next step."""
        self.core.aborts_queue.put_nowait([name])

    def table(self, *rows: list[int]) -> None:
        """PUT a schedule."""
        self.revision += 1
        keys = ("startBatchSize", "endBatchSize", "numSpeculativeTokens")
        body = {
            "revision": {"owner": "o", "number": self.revision},
            "ranges": [dict(zip(keys, r, strict=True)) for r in rows],
        }
        assert self.core.dsd_put(json.dumps(body), str(self.revision))["result"] == "applied"

    def pause(self) -> None:
        """Pause and go on, as for new weights; a second passes."""
        from vllm.v1.core.sched.interface import PauseState

        self.scheduler.set_pause_state(PauseState.PAUSED_ALL)
        self.clock.now += 1
        self.scheduler.set_pause_state(PauseState.UNPAUSED)
        self.paused = True

    def wait(self) -> None:
        """A second passes."""
        self.clock.now += 1

    def step(self, times: int = 1) -> None:
        """Engine steps, as the engine's own loop does them."""
        for _ in range(times):
            self.record = {}
            _, executed = self.core.step()
            self.core.post_step(executed)
            if self.record:
                self.scheduler.dsd.runtime.flush()
                self.record["series"] = collected(self.folder)
                self.records.append(self.record)

    def drain(self) -> None:
        """Steps until nothing is left to do."""
        while self.scheduler.has_requests():
            self.step()

    def fuzz(self, seed: int, steps: int) -> None:
        """Random load: requests come, are aborted, stop at random tokens; another schedule every few steps."""
        chance, alive = random.Random(seed), 0
        for _ in range(steps):
            if chance.random() < 0.35:
                alive += 1
                stops = chance.sample(range(SPECIAL, VOCABULARY), 25)
                self.add(f"f{seed}-{alive}", chance.choice((1, 3, 20, 60)), chance.randint(1, 50), stops)
            if chance.random() < 0.3:
                edge = chance.randint(1, 7)
                self.table([1, edge, chance.randint(0, 4)], [edge + 1, 64, chance.randint(0, 4)])
            if self.scheduler.requests and chance.random() < 0.05:
                order = chance.choice((self.abort, self.abort_in_flight))
                order(chance.choice(sorted(self.scheduler.requests)))
            if chance.random() < 0.02:
                chance.choice((self.pause, self.wait))()
            self.step()
        self.drain()

    def _tap_schedule(self, *arguments: Any) -> Any:
        output = self._schedule(*arguments)
        cached = output.scheduled_cached_reqs
        computed = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        computed |= {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        requests = self.scheduler.requests
        self.record = {
            "scheduled": dict(output.num_scheduled_tokens),
            "drafts": {name: len(ids) for name, ids in output.scheduled_spec_decode_tokens.items()},
            "chosen": output.num_spec_tokens_to_schedule,
            "computed": computed,
            "known": {name: requests[name].num_tokens for name in computed},
            "outputs": {name: requests[name].num_output_tokens for name in computed},
            "limits": {name: requests[name].max_tokens for name in computed},
            "stops": {name: list(requests[name].sampling_params.stop_token_ids) for name in computed},
            "resumed": sorted(cached.resumed_req_ids),
            "paused": self.paused,
        }
        self.paused = False
        return output

    def _tap_update(self, output: Any, answer: Any) -> Any:
        self.clock.now += self.random.randint(1, 64) / 1024
        requests = self.scheduler.requests
        sampled = {name: list(answer.sampled_token_ids[i]) for name, i in answer.req_id_to_index.items()}
        alive = [name for name in sampled if name in requests and not requests[name].is_finished()]
        results = self._update(output, answer)
        given = {one.request_id: len(one.new_token_ids) for r in results.values() for one in r.outputs}
        stats = [r.scheduler_stats.spec_decoding_stats for r in results.values() if r.scheduler_stats]
        self.record |= {
            "sampled": {name: sampled[name] for name in alive},
            "given": given,
            "vllm": next((vars(s) for s in stats if s), None),
            "end": self.clock.now,
            "busy": self.scheduler.has_unfinished_requests(),
        }
        return results


def main() -> None:
    """Run the script of standard input; the records go to the file that the script names."""
    order = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text("ranges: [{startBatchSize: 1, endBatchSize: 64, numSpeculativeTokens: 3}]")
        os.environ.update(settings(folder))
        driver = Driver(Path(order["models"]), folder, order["log_stats"])
        found = {}
        for title, script in order["scripts"].items():
            for command, *arguments in script:
                getattr(driver, command)(*arguments)
            found[title], driver.records = driver.records, []
        assert driver.scheduler.dsd is not None, "the plugin failed"
        Path(order["result"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
