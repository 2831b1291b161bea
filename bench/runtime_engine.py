"""One engine in a process of its own, which does what comes through a pipe: the child side of `runtime_pool`.

The engine core runs inside this process (no IPC, no process that spins while another configuration is measured), its
threads sleep between the runs. Where the plugin is on, everything is as in a pod: config file, start-up table, metrics
recorded into a directory on tmpfs.
"""

import cProfile
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from bench.runtime_workloads import Task

Triples = tuple[tuple[int, int, int], ...]
MAX_NUM_SEQS: Final = 32
LARGEST: Final = 5
KV_CACHE_BYTES: Final = 640 * 2**20
"""Room for 28,000 tokens of SmolLM2-135M: every prompt of a workload and 32 answers."""

OWNER: Final = "bench/engine/0"
TMPFS: Final = Path("/dev/shm")


@dataclass(frozen=True)
class EngineSpec:
    """A configuration. `tokens` is None without speculation; `table` is vLLM's static one, or our schedule with the
    plugin; None for a fixed K."""

    name: str
    model: str
    tokens: int | None
    table: Triples | None = None
    plugin: bool = False
    max_model_len: int = 1024
    dtype: str = "auto"

    def speculative(self) -> dict[str, Any] | None:
        """The speculative config that vLLM gets."""
        if self.tokens is None:
            return None
        config: dict[str, Any] = {
            "method": "ngram",
            "num_speculative_tokens": self.tokens,
            "prompt_lookup_min": 1,
            "prompt_lookup_max": 4,
        }
        if self.table is not None and not self.plugin:
            config["num_speculative_tokens_per_batch_size"] = [list(triple) for triple in self.table]
        return config


@dataclass(frozen=True)
class Run:
    """What one run did. `swaps` are schedules that the engine took meanwhile, `swap_seconds` what they cost it."""

    seconds: float
    tokens: int
    steps: int
    drafted: int
    accepted: int
    swaps: int = 0
    swap_seconds: float = 0.0

    @property
    def throughput(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds


class Counts:
    """Stands in the place of vLLM's front-end metrics, which in a server live in another process: adds up drafts."""

    def __init__(self) -> None:
        self.drafted = self.accepted = 0

    def record(self, scheduler_stats: Any, **_: Any) -> None:
        """vLLM calls this after each step."""
        if stats := scheduler_stats.spec_decoding_stats:
            self.drafted += stats.num_draft_tokens
            self.accepted += stats.num_accepted_tokens

    def log(self) -> None:
        """Nothing to log."""


class Swapper:
    """Puts schedules in turn, at a steady rate, through the engine core's own utilities, between two steps.

    In a server the utility of a PUT (`dsd_put`; several engine cores are asked by `dsd_check` before) waits in the
    engine core's input queue while a step runs, and all that wait are done before the next one; so here.
    """

    def __init__(self, core: Any, schedules: Sequence[Triples], per_second: float, first: int) -> None:
        self._core, self._schedules, self._per_second = core, schedules, per_second
        self._first, self._started = first, time.perf_counter()
        self.done, self.seconds = 0, 0.0

    def catch_up(self) -> None:
        """Do the swaps that are due."""
        begun = time.perf_counter()
        due = int((begun - self._started) * self._per_second)
        while self.done < due:
            number = self._first + self.done
            put(self._core, self._schedules[number % len(self._schedules)], number)
            self.done += 1
        self.seconds += time.perf_counter() - begun


def put(core: Any, triples: Triples, number: int) -> None:
    """One PUT as the route does it with one engine core; raises RuntimeError when that does not take it."""
    body = json.dumps({"revision": {"owner": OWNER, "number": number}, "ranges": wire(triples)})
    taken = core.dsd_put(body, f"bench-{number}")
    if taken["result"] != "applied":
        raise RuntimeError(f"the engine refused schedule {triples}: {taken}")


def wire(triples: Triples) -> list[dict[str, int]]:
    """A schedule as JSON has it."""
    return [{"startBatchSize": a, "endBatchSize": b, "numSpeculativeTokens": k} for a, b, k in triples]


class Driven:
    """The engine and the closed loop that loads it."""

    def __init__(self, spec: EngineSpec) -> None:
        """Start the engine; the environment must be `prepare`d."""
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        arguments = EngineArgs(
            model=spec.model,
            dtype=spec.dtype,
            enforce_eager=True,
            max_model_len=spec.max_model_len,
            max_num_seqs=MAX_NUM_SEQS,
            block_size=32,  # the default of 128 caches little of a short prompt
            kv_cache_memory_bytes=KV_CACHE_BYTES,
            enable_prefix_caching=True,
            disable_log_stats=False,
            speculative_config=spec.speculative(),
        )
        self.engine: Any = LLMEngine.from_engine_args(arguments)
        self.counts = Counts()
        self.engine.logger_manager = self.counts
        self._requests = 0
        self._revision = 2  # above the config file's
        if spec.plugin and spec.table is not None:
            used = self.core.dsd_status()["schedule"]
            if used["ranges"] != wire(spec.table):
                raise RuntimeError(f"the engine does not use its table {spec.table}: {used}")

    @property
    def core(self) -> Any:
        """vLLM's EngineCore."""
        return self.engine.engine_core.engine_core

    def run(
        self,
        tasks: Sequence[Task],
        concurrency: int,
        seconds: float = 0.0,
        swaps: tuple[Sequence[Triples], float] | None = None,
    ) -> Run:
        """Serve `tasks`, `concurrency` of them at once, to the last one, or over and over for `seconds`."""
        drafted, accepted = self.counts.drafted, self.counts.accepted
        swapper = Swapper(self.core, *swaps, self._revision) if swaps else None
        started = time.perf_counter()
        until = started + seconds if seconds else None
        tokens, steps = self._loop(endless(tasks) if until else iter(tasks), concurrency, until, swapper)
        taken = time.perf_counter() - started
        self._abort()
        self._revision += swapper.done if swapper else 0
        return Run(
            taken,
            tokens,
            steps,
            self.counts.drafted - drafted,
            self.counts.accepted - accepted,
            *((swapper.done, swapper.seconds) if swapper else ()),
        )

    def _loop(
        self, tasks: Iterator[Task], concurrency: int, until: float | None, swapper: Swapper | None
    ) -> tuple[int, int]:
        """(tokens, steps) until `tasks` are served or the time is over."""
        waiting, running, tokens, steps = next(tasks, None), 0, 0, 0
        while (waiting or running) and (until is None or time.perf_counter() < until):
            while waiting and running < concurrency:
                self._add(waiting)
                waiting, running = next(tasks, None), running + 1
            if swapper:
                swapper.catch_up()
            for output in self.engine.step():
                running -= output.finished
                tokens += len(output.outputs[0].token_ids)
            steps += 1
        return tokens, steps

    def _add(self, task: Task) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            temperature=0,
            repetition_penalty=task.repetition_penalty,
            max_tokens=task.tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        self._requests += 1
        self.engine.add_request(f"r{self._requests}", task.prompt, parameters)

    def _abort(self) -> None:
        self.engine.abort_request(list(self.engine.output_processor.request_states), internal=True)
        while self.engine.has_unfinished_requests():
            self.engine.step()

    def put(self, triples: Triples) -> None:
        """Change the schedule in place."""
        put(self.core, triples, self._revision)
        self._revision += 1

    def profile(self, tasks: Sequence[Task], concurrency: int) -> list[dict[str, Any]]:
        """Run once under cProfile; the functions with the most time of their own for each step."""
        profiler = cProfile.Profile()
        run = profiler.runcall(self.run, tasks, concurrency)
        return hottest(profiler, run.steps)

    def profile_swaps(self, schedules: Sequence[Triples], swaps: int = 500) -> list[dict[str, Any]]:
        """Change the schedule so often under cProfile; the functions with the most time of their own for each swap."""
        profiler = cProfile.Profile()
        for number in range(swaps):
            profiler.runcall(self.put, schedules[number % len(schedules)])
        return hottest(profiler, swaps)

    def versions(self) -> dict[str, str]:
        """What runs here."""
        import torch
        import vllm

        from dsd_runtime import __version__

        return {"vllm": str(vllm.__version__), "torch": str(torch.__version__), "dsd-runtime": __version__}


def hottest(profiler: cProfile.Profile, times: int) -> list[dict[str, Any]]:
    """The functions with the most time of their own, in milliseconds for each of so many times."""
    profiler.create_stats()
    stats: dict[tuple[str, int, str], Any] = profiler.stats
    rows = [
        {"function": f"{Path(file).name}:{line} {name}", "milliseconds": 1000 * own / times, "calls": calls / times}
        for (file, line, name), (_, calls, own, _, _) in stats.items()
    ]
    return sorted(rows, key=lambda row: -row["milliseconds"])[:12]


def endless(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks, over and over."""
    while True:
        yield from tasks


def prepare(spec: EngineSpec, folder: Path) -> None:
    """Set this process up before anything of vLLM is imported; `folder` takes the config file and the metrics."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        OMP_NUM_THREADS=str(os.cpu_count() or 1),
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="INFO",
        VLLM_NO_USAGE_STATS="1",
        VLLM_PLUGINS="dsd" if spec.plugin else "",
    )
    if spec.plugin and spec.table is not None:
        metrics, config = folder / "metrics", folder / "config.json"
        metrics.mkdir()
        config.write_text(
            json.dumps({"revision": {"owner": OWNER, "number": 1}, "ranges": wire(spec.table)}), encoding="utf-8"
        )
        os.environ.update(PROMETHEUS_MULTIPROC_DIR=str(metrics), DSD_CONFIG=str(config))


def serve(pipe: Connection, spec: EngineSpec, log: Path) -> None:
    """The process: start, then answer (method, arguments) with (error or None, result) until the pipe closes."""
    with log.open("ab") as file, tempfile.TemporaryDirectory(dir=TMPFS if TMPFS.is_dir() else None) as folder:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        prepare(spec, Path(folder))
        driven: Driven | None = None
        while True:
            try:
                method, arguments = pipe.recv()
            except EOFError:
                return
            try:
                if driven is None:
                    driven = Driven(spec)
                call: Callable[..., Any] = getattr(driven, method)
                pipe.send((None, call(*arguments)))
            except Exception as error:  # goes to the parent, which raises it
                pipe.send((f"{type(error).__name__}: {error}", None))
