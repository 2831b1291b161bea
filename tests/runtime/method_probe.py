"""Runs engines in processes of their own, one after the other, for `test_methods_*`: what a method does when K changes.

A parent that imports vLLM once, and a fork of it for each case: the import is most of an engine's start, and an engine
that dies takes nothing with it. `Prober` is the tests' side; `python -m tests.runtime.method_probe` is the parent.
"""

import importlib
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CASE_SECONDS = 600
SEED = 7


@dataclass(frozen=True)
class Case:
    """One engine. `tables` are vLLM's triples: the schedules put, one before each step, in a random order.

    Without `plugin` it is vLLM as it is, and the first table is its static one. `environment` is added to the child's.
    A `program`, where there is one, runs instead of an engine.
    """

    model: str = ""
    speculative: Mapping[str, Any] | None = None
    tables: tuple[tuple[tuple[int, int, int], ...], ...] = ()
    plugin: bool = True
    tokens: int = 32
    program: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What came of a case. `error` is the last line of the exception that ended the engine, "" when it served.

    `drafts`, `drafted` and `accepted` are vLLM's own totals, `accepted_at` those at each position; `verified` counts
    the requests of all decode steps by how many draft tokens they verified; `refused` holds what we said to schedules
    that we refused, `status` what we say of the engine.
    """

    error: str
    log: str
    outputs: list[list[int]] = field(default_factory=list)
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_at: list[int] = field(default_factory=list)
    verified: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)


class Prober:
    """The parent process, as the tests use it. Ends with `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._log = (folder / "prober.log").open("wb")
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
        environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        environment |= {"OMP_NUM_THREADS": "1", "VLLM_LOGGING_COLOR": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.method_probe"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def run(self, case: Case) -> Outcome:
        """Run one case to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        self._process.stdin.write(json.dumps({"case": asdict(case), "folder": str(folder)}).encode() + b"\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"done\n", (self._folder / "prober.log").read_text()[-3000:]
        log = (folder / "log").read_text(errors="replace")
        result = folder / "result.json"
        if not result.exists():
            return Outcome("the process ended without a result", log)
        return Outcome(log=log, **json.loads(result.read_text()))

    def close(self) -> None:
        """End it; a case that still runs ends with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._log.close()


def serve() -> None:
    """The parent: a fork for each line of stdin, its output in a file of its own."""
    for module in ("vllm", "vllm.v1.engine.core", "vllm.v1.worker.cpu_worker", "vllm.v1.worker.cpu_model_runner"):
        importlib.import_module(module)

    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(order)
        _wait(child)
        print("done", flush=True)


def _wait(child: int) -> None:
    deadline = time.monotonic() + CASE_SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return
        time.sleep(0.02)


def _child(order: dict[str, Any]) -> None:
    folder = Path(order["folder"])
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        found = run_case(order["case"], folder)
    except BaseException as error:
        traceback.print_exc()
        found = {"error": traceback.format_exception_only(error)[-1].strip()}
    (folder / "result.json").write_text(json.dumps(found))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the engine, serve the prompts, sum up."""
    os.environ.update(case["environment"])
    sys.path[:0] = case["environment"].get("PYTHONPATH", "").split(os.pathsep)
    if case["program"]:
        exec(compile(case["program"], "program", "exec"), {})
        return {"error": ""}
    os.environ["VLLM_PLUGINS"] = "dsd" if case["plugin"] else ""
    speculative = dict(case["speculative"]) if case["speculative"] else None
    if case["plugin"] and speculative:
        config = folder / "config.yaml"
        config.write_text(json.dumps({"ranges": ranges(case["tables"][0])}))
        os.environ["DSD_CONFIG"] = str(config)
    elif speculative and case["tables"]:
        speculative["num_speculative_tokens_per_batch_size"] = case["tables"][0]
    from vllm import LLM

    sizes = {"max_model_len": 512, "max_num_seqs": 8}
    settings: dict[str, Any] = {**sizes, "enforce_eager": True, "dtype": "float32", "seed": 0}
    settings |= {"disable_log_stats": False, "enable_prefix_caching": False}
    llm = LLM(case["model"], speculative_config=speculative, **settings)
    core = llm.llm_engine.engine_core.engine_core
    verified = watch(core.scheduler)
    outputs, refused = drive(llm.llm_engine, case)
    status = core.dsd_status() if case["plugin"] and speculative else {}
    found = {"outputs": outputs, "refused": refused, "status": status, "verified": verified}
    return {"error": "", **found, **counts(llm)}


def watch(scheduler: Any) -> dict[str, int]:
    """Count, from now on, the requests of decode steps by how many draft tokens the step verifies for them."""
    found: dict[str, int] = {}
    original = scheduler.update_from_output

    def update_from_output(output: Any, *rest: Any) -> Any:
        drafts = output.scheduled_spec_decode_tokens
        cached = output.scheduled_cached_reqs
        for request in (name for name, n in zip(cached.req_ids, cached.num_output_tokens, strict=True) if n):
            key = str(len(drafts.get(request, ())))
            found[key] = found.get(key, 0) + 1
        return original(output, *rest)

    scheduler.update_from_output = update_from_output
    return found


def ranges(table: list[tuple[int, int, int]]) -> list[dict[str, int]]:
    """Triples as our JSON has them."""
    return [{"startBatchSize": a, "endBatchSize": b, "numSpeculativeTokens": k} for a, b, k in table]


WORDS = ("cat", "dog", "cow")


def drive(engine: Any, case: dict[str, Any]) -> tuple[list[list[int]], list[str]]:
    """Serve three prompts of different lengths, with another schedule put before each step."""
    from vllm import SamplingParams

    generator = random.Random(SEED)
    sampling = SamplingParams(max_tokens=case["tokens"], temperature=0, ignore_eos=True)
    for number, word in enumerate(WORDS):
        engine.add_request(str(number), f"the {word} sat on the {'mat and the ' * number}{word}", sampling)
    found: dict[str, list[int]] = {}
    refused: list[str] = []
    number = 0
    while engine.has_unfinished_requests():
        if case["plugin"] and case["speculative"]:
            number += 1
            refused += put(engine.engine_core.engine_core, number, generator.choice(case["tables"]))
        for output in engine.step():
            if output.finished:
                found[output.request_id] = list(output.outputs[0].token_ids)
    return [found[key] for key in sorted(found)], list(dict.fromkeys(refused))


def put(core: Any, number: int, table: list[tuple[int, int, int]]) -> list[str]:
    """PUT a schedule as the route does; the messages of a refusal."""
    body = json.dumps({"revision": {"owner": "probe", "number": number}, "ranges": ranges(table)})
    answer = core.dsd_put(body, str(number))
    return [f"{answer['result']}: {p['message']}" for p in answer.get("problems", ())] or (
        [] if answer["result"] == "applied" else [answer["result"]]
    )


COUNTERS = {"drafts": "drafts", "draft_tokens": "drafted", "accepted_tokens": "accepted"}


def counts(llm: Any) -> dict[str, Any]:
    """vLLM's own totals of speculation."""
    found: dict[str, Any] = {}
    for metric in llm.get_metrics():
        name = metric.name.removeprefix("vllm:spec_decode_num_")
        if name in COUNTERS:
            found[COUNTERS[name]] = metric.value
        elif name == "accepted_tokens_per_pos":
            found["accepted_at"] = list(metric.values)
    return found


if __name__ == "__main__":
    serve()
