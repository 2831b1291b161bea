"""A real engine that is stepped by hand, so that each step has the batch size that a plan says.

    python -m bench.stepped FOLDER

Engine core, scheduler, worker and models are those of a server, in one process; schedules enter by the utility that the
PUT route calls. Requests are added and aborted between steps, which makes a load that no server could repeat. `hover`
and the tests start it through `play`.
"""

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tools.testbed.workload import prompts

MAX_NUM_SEQS: Final = 32
MAX_TOKENS: Final = 64
PROMPTS: Final = 8
START_SECONDS: Final = 300
"""For an engine to start and play, beyond what its steps take."""

STEP_SECONDS: Final = 0.2
"""More than a step of a tiny model takes on a busy machine."""


@dataclass(frozen=True)
class Arm:
    """One run: `content` (ranges and smoothing, as in a PUT) is put, then each step has the batch size in `sizes`.

    Without speculation there is nothing to put.
    """

    sizes: Sequence[int]
    content: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """One engine and what it plays, one arm after the other. `speculative` is vLLM's own config; None: none."""

    model: str
    speculative: Mapping[str, Any] | None
    arms: Sequence[Arm]


@dataclass
class Played:
    """What an arm did, step by step: batch size and K as vLLM's scheduler said them, and seconds. `outputs` holds
    (prompt, tokens) of every request."""

    sizes: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    outputs: list[tuple[int, list[int]]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def emitted(self) -> int:
        """Tokens that went out."""
        return sum(len(tokens) for _, tokens in self.outputs)

    @property
    def changes(self) -> int:
        """Steps whose K differs from the step before."""
        return sum(before != after for before, after in pairwise(self.tokens))


def play(plans: Sequence[Plan]) -> list[list[Played]]:
    """Play the plans one after the other in a process of its own; raises RuntimeError with its log when it fails."""
    steps = sum(len(arm.sizes) for plan in plans for arm in plan.arms)
    with TemporaryDirectory(prefix="dsd-stepped-") as name:
        folder = Path(name)
        (folder / "plans.json").write_text(json.dumps([asdict(plan) for plan in plans]))
        (folder / "config.yaml").write_text(json.dumps({"ranges": [
            {"startBatchSize": 1, "endBatchSize": MAX_NUM_SEQS, "numSpeculativeTokens": 1}
        ]}))  # fmt: skip
        (folder / "metrics").mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "bench.stepped", name],
            env=environment(folder), capture_output=True, text=True, check=False,
            timeout=START_SECONDS * len(plans) + STEP_SECONDS * steps,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the engine ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-6000:]}")
        results = [json.loads((folder / f"{number}.json").read_text()) for number in range(len(plans))]
        return [[Played(**arm) for arm in arms] for arms in results]


def environment(folder: Path) -> dict[str, str]:
    """That of the engine's process."""
    return os.environ | {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # More threads only wait for each other in a tiny model. Numba's (ngram) would set OpenMP's number anew.
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_PLUGINS": "dsd",
        "DSD_CONFIG": str(folder / "config.yaml"),
        "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
    }


class Stepped:
    """The engine of one plan."""

    def __init__(self, plan: Plan) -> None:
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        arguments = EngineArgs(
            model=plan.model,
            dtype="float32",
            enforce_eager=True,
            max_model_len=512,
            block_size=32,
            num_gpu_blocks_override=1024,
            max_num_seqs=MAX_NUM_SEQS,
            enable_prefix_caching=False,
            distributed_executor_backend="uni",
            speculative_config=dict(plan.speculative) if plan.speculative else None,
        )
        self.engine: Any = LLMEngine.from_engine_args(arguments)
        self.core: Any = self.engine.engine_core.engine_core
        self.prompts = prompts(PROMPTS)
        self._watch_scheduler()
        self._played = Played()
        self._number = 0
        self._open: dict[str, tuple[int, list[int]]] = {}
        """The running requests, the oldest first."""

    def _watch_scheduler(self) -> None:
        """Note what vLLM's scheduler hands to the worker in each step: nothing of ours has a say in that."""
        schedule = self.core.scheduler.schedule

        def watched(*arguments: Any, **options: Any) -> Any:
            output = schedule(*arguments, **options)
            self._played.sizes.append(len(output.num_scheduled_tokens))
            self._played.tokens.append(output.num_spec_tokens_to_schedule)
            return output

        self.core.scheduler.schedule = watched

    def put(self, content: Mapping[str, Any], number: int) -> None:
        """Use a schedule from the next step on."""
        body = json.dumps({"revision": {"owner": "stepped", "number": number}, **content})
        answer = self.core.dsd_put(body, f"change {number}")
        if answer["result"] != "applied":
            raise RuntimeError(f"the schedule was not taken: {answer}")

    def run(self, sizes: Sequence[int]) -> Played:
        """Make a step for each size; ends with no request left."""
        self._played = Played()
        for size in sizes:
            started = time.perf_counter()
            self._resize(size)
            for output in self.engine.step():
                self._note(output)
            self._played.seconds.append(time.perf_counter() - started)
        self._resize(0)
        return self._played

    def _resize(self, size: int) -> None:
        while len(self._open) > size:
            name, output = self._open.popitem()
            self.engine.abort_request([name])
            self._played.outputs.append(output)
        while len(self._open) < size:
            self._add()

    def _add(self) -> None:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        kind = RequestOutputKind.DELTA
        parameters = SamplingParams(temperature=0, max_tokens=MAX_TOKENS, ignore_eos=True, output_kind=kind)
        name, prompt = str(self._number), self._number % PROMPTS
        self._number += 1
        self._open[name] = (prompt, [])
        self.engine.add_request(name, {"prompt_token_ids": list(self.prompts[prompt])}, parameters)

    def _note(self, output: Any) -> None:
        self._open[output.request_id][1].extend(output.outputs[0].token_ids)
        if output.finished:
            self._played.outputs.append(self._open.pop(output.request_id))


def play_here(plan: Plan) -> list[Played]:
    """Play one plan in this process."""
    stepped = Stepped(plan)
    played = []
    for number, arm in enumerate(plan.arms, start=1):
        if arm.content is not None:
            stepped.put(arm.content, number)
        played.append(stepped.run(arm.sizes))
    return played


def play_in_a_fork(plan: Plan, results: Path) -> int:
    """Play one plan in a fork, which writes to `results`; returns its exit status.

    Importing vLLM is half of an engine's start, and two engines in one process are not what vLLM is made for.
    """
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        results.write_text(json.dumps([asdict(played) for played in play_here(plan)]))
        os._exit(0)  # vLLM's own end waits for its watchers' threads now and then
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main() -> int:
    """Play `plans.json` in the folder of the first argument, write `N.json` for each; 1 when one fails."""
    from vllm.v1.engine.llm_engine import LLMEngine  # noqa: F401 - before the forks

    folder = Path(sys.argv[1])
    for number, plan in enumerate(json.loads((folder / "plans.json").read_text())):
        arms = [Arm(**arm) for arm in plan.pop("arms")]
        if play_in_a_fork(Plan(arms=arms, **plan), folder / f"{number}.json"):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
