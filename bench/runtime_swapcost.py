"""What changing the schedule costs a busy engine: throughput with 100 swaps per second and without. A part of
`bench.runtime`."""

from typing import Any, Final

from bench.results import extent
from bench.runtime_engine import LARGEST, EngineSpec, Run, Triples
from bench.runtime_plan import Plan, Progress, rotated
from bench.runtime_pool import Pool
from bench.runtime_ratios import OURS, pairs
from bench.runtime_workloads import closed_loop

CONCURRENCY: Final = 16
PER_SECOND: Final = 100.0
SCHEDULES: Final[tuple[Triples, ...]] = (
    ((1, 16, 1), (17, 32, 0)),
    ((1, 16, 1), (17, 24, 3), (25, 32, 0)),
)
"""They differ only above the concurrency that occurs: every step has the same K, whichever is in use."""

CONDITIONS: Final = ("no swaps", "swaps")
METHOD: Final = " ".join(
    f"""
    One engine of the sweep's kind with the plugin serves the edit workload in a closed loop, {CONCURRENCY}
    requests at once, for a fixed time, over and over with {PER_SECOND:g} swaps per second and without, in pairs;
    the order within a pair alternates. A swap is what a PUT makes a single engine core do: the route's utility
    `dsd_put` with a JSON body and an ascending revision, between two steps, which is when vLLM's engine core handles
    utilities, with log and metrics of the schedule as they are in a pod (on tmpfs; twice a second in such a burst).
    The two schedules that take turns differ only above {CONCURRENCY}, so that every step has the same K and only
    the swapping itself can cost anything. HTTP and the check of the token are not in it: they happen in the API
    server's process.
    """.split()
)


def measure(model: str, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run it; (the rows of `data`, versions)."""
    progress = Progress("swapcost", plan.rounds * len(CONDITIONS))
    tasks = closed_loop("edit", CONCURRENCY, 96 // plan.shortening)
    with Pool() as pool:
        member = pool.start(EngineSpec(OURS, model, LARGEST, SCHEDULES[0], plugin=True))
        member.run(tasks, CONCURRENCY)
        found: dict[str, list[Run]] = {name: [] for name in CONDITIONS}
        for number in range(plan.rounds):
            for name in rotated(CONDITIONS, number):
                swaps = (SCHEDULES, PER_SECOND) if name == "swaps" else None
                run: Run = member.call("run", tasks, CONCURRENCY, plan.swap_seconds, swaps)
                found[name].append(run)
                progress.step(f"{name}: {run.throughput:.1f} tokens/s, {run.swaps} swaps")
        explanation = {"explains": "a swap", "functions": {OURS: member.call("profile_swaps", SCHEDULES)}}
        return [*rows(found), explanation], member.call("versions")


def rows(found: dict[str, list[Run]]) -> list[dict[str, Any]]:
    """The rows of `data`."""
    ratio = pairs([r.throughput for r in found["swaps"]], [r.throughput for r in found["no swaps"]])
    return [*(_row(name, runs) for name, runs in found.items()), {"comparison": "swaps / none", "ratio": extent(ratio)}]


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    throughput = [run.throughput for run in runs]
    return {
        "condition": name,
        "tokens_per_second": extent(throughput),
        "milliseconds_per_swap": [1000 * run.swap_seconds / run.swaps for run in runs if run.swaps],
        "swaps_per_second": [run.swaps / run.seconds for run in runs],
        "run_seconds": [run.seconds for run in runs],
        "samples": throughput,
    }
