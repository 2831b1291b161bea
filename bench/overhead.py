"""What counting the steps costs an engine: `python -m bench.overhead` (`make bench-overhead`).

One real engine in this process, at concurrency 64; `results` has the format, `report` makes the page.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.overhead_page import LONG_NAME, page
from bench.results import Required, Result, environment, spread, write
from dsd_runtime.multiproc import MULTIPROC_DIR
from dsd_runtime.schedule import MAX_SPECULATIVE_TOKENS
from dsd_runtime.series_budget import PAGE_BYTES
from tools.cluster.paths import cache_root
from tools.models import tiny

NAME: Final = "overhead"
CONCURRENCY: Final = 64
MAX_TOKENS: Final = 4
PAIRS: Final = 10
STEPS: Final = 15
"""Steps of one block."""

WARM_UP: Final = 15
KV_BYTES: Final = 1 << 29
"""Room for all requests at the largest length: 4 KiB per token."""

MICROSECONDS: Final = 1e6

METHOD: Final = " ".join(
    f"""
    A tiny random Llama (8 layers, float32, ngram drafter, K={MAX_TOKENS}) in a real EngineCore of this process serves
    {CONCURRENCY} requests that only decode; its steps are shorter than those of any model that somebody would serve, so
    the share is an upper bound. {PAIRS} pairs of blocks of {STEPS} steps, with our recorder and without it by turns;
    without it vLLM follows the same schedule as its own static table. `hooks_us` is the time inside the recorder per
    step (choosing K, counting, writing the metric files), by a clock around each of its three hooks, the clocks
    included; `step_us` is the median step of the same block; `share_percent` the time in the hooks over that of the
    block. `slowdown_percent` compares the median steps with and without the recorder: the same cost seen from outside,
    with the noise of the machine. The page is the text of all dsd_ series after a step with every K from 0 to
    {MAX_SPECULATIVE_TOKENS} at every concurrency up to 2048, the longest schedule, and a model name of {len(LONG_NAME)}
    characters.
    """.split()
)


def start(folder: Path) -> Any:
    """A real EngineCore with our plugin."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.executor import Executor

    from dsd_runtime import plugin

    (folder / "config.yaml").write_text(
        f"ranges: [{{startBatchSize: 1, endBatchSize: {CONCURRENCY}, numSpeculativeTokens: {MAX_TOKENS}}}]"
    )
    os.environ["DSD_CONFIG"] = str(folder / "config.yaml")
    plugin.register()
    models = tiny.make(cache_root() / "models" / "tiny")
    drafter = {"method": "ngram", "num_speculative_tokens": MAX_TOKENS, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
    config = EngineArgs(
        model=str(models / "target"), dtype="float32", max_model_len=tiny.MAX_POSITIONS, max_num_seqs=CONCURRENCY,
        enforce_eager=True, enable_prefix_caching=False, speculative_config=drafter, kv_cache_memory_bytes=KV_BYTES,
    ).create_engine_config()  # fmt: skip
    return EngineCore(config, Executor.get_class(config), log_stats=True)


def add_requests(core: Any) -> None:
    """As many requests as run at once, none of which ends."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine import EngineCoreRequest

    for number in range(CONCURRENCY):
        parameters = SamplingParams(temperature=0, max_tokens=tiny.MAX_POSITIONS - 16, ignore_eos=True)
        parameters.update_from_generation_config({}, eos_token_id=None)
        ids = [10 + number, 80, 81, 82, 80, 81, 82, 80]
        request = EngineCoreRequest(str(number), ids, None, parameters, None, 0.0, None, None, None)
        core.add_request(*core.preprocess_add_request(request))


def steps(core: Any) -> list[float]:
    """The seconds of each step of a block."""
    found = []
    for _ in range(STEPS):
        before = time.perf_counter()
        _, executed = core.step()
        core.post_step(executed)
        found.append(time.perf_counter() - before)
        running = len(core.scheduler.running)
        if running != CONCURRENCY:
            raise RuntimeError(f"{running} requests run, not {CONCURRENCY}")
    return found


class Hooks:
    """The recorder with a clock around each of its hooks."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.seconds = 0.0
        for name in ("scheduled", "begin", "finished"):
            setattr(recorder, name, self._timed(getattr(recorder, name)))

    def _timed(self, hook: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            before = time.perf_counter()
            hook(*arguments)
            self.seconds += time.perf_counter() - before

        return timed


@contextmanager
def without(core: Any, hooks: Hooks) -> Iterator[None]:
    """vLLM alone, with the same schedule as its static table."""
    scheduler = core.scheduler
    before, scheduler.dynamic_sd_lookup = scheduler.dynamic_sd_lookup, hooks.recorder.runtime.static_table()
    scheduler.dsd = None
    yield
    scheduler.dsd, scheduler.dynamic_sd_lookup = hooks.recorder, before


def pair(core: Any, hooks: Hooks, first: bool) -> dict[str, Any]:
    """One block with the recorder and one without; `first` says whether it comes first."""
    hooks.seconds = 0.0
    counted = steps(core) if first else []
    with without(core, hooks):
        alone = steps(core)
    counted = counted or steps(core)
    return {
        "step_us": round(MICROSECONDS * median(counted), 1),
        "step_without_us": round(MICROSECONDS * median(alone), 1),
        "hooks_us": round(MICROSECONDS * hooks.seconds / STEPS, 2),
        "share_percent": round(100 * hooks.seconds / sum(counted), 3),
        "slowdown_percent": round(100 * (median(counted) / median(alone) - 1), 2),
    }


def measure_steps(folder: Path) -> list[dict[str, Any]]:
    """All pairs."""
    core = start(folder)
    add_requests(core)
    for _ in range(WARM_UP):
        core.post_step(core.step()[1])
    hooks = Hooks(core.scheduler.dsd)
    found = [pair(core, hooks, first=number % 2 == 0) for number in range(PAIRS)]
    core.shutdown()
    return found


def measure_page() -> int:
    """Bytes of the largest page."""
    with tempfile.TemporaryDirectory() as name:
        os.environ[MULTIPROC_DIR] = name
        sizes = [2**n for n in range(12)]
        return len(page(Path(name), LONG_NAME, range(MAX_SPECULATIVE_TOKENS + 1), sizes, sizes[-1]).encode())


def summary(pairs: list[dict[str, Any]], size: int) -> Result:
    """The result file."""
    from importlib.metadata import version

    figures = {name: spread([one[name] for one in pairs]) for name in pairs[0]}
    share = figures["share_percent"]["p50"]
    return Result(
        environment=environment({"vllm": version("vllm"), "prometheus-client": version("prometheus-client")}),
        method=METHOD,
        data=(*pairs, {"spread": figures}, {"page_bytes": size}),
        required=(
            Required.of(f"recorder's share of a step, concurrency {CONCURRENCY}", share, "%", "<=", 1.0),
            Required.of("largest dsd_ page of an engine core", size / 1000, "kB", "<=", PAGE_BYTES / 1000),
        ),
    )


def main() -> int:
    """Measure, write the file, say what came out."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1"}
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        os.environ[MULTIPROC_DIR] = name
        pairs = measure_steps(Path(name))
    result = summary(pairs, measure_page())
    for required in result.required:
        print(f"{required.name}: {required.value:.3g} {required.unit} (at most {required.threshold:g})")
    print(write(NAME, result))
    return 0 if all(required.met for required in result.required) else 1


if __name__ == "__main__":
    sys.exit(main())
