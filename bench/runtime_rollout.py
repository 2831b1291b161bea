"""The rollout of reinforcement learning: one batch until its last request ends. A part of `bench.runtime`.

The batch shrinks while its long requests go on, so no fixed K is right from its beginning to its end.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from bench.results import extent
from bench.runtime_engine import LARGEST, EngineSpec, Run
from bench.runtime_plan import Plan, Progress, rotated, tokens
from bench.runtime_pool import Pool
from bench.runtime_ratios import FIXED, NONE, OURS, fixed, pairs
from bench.runtime_sweep import profile, specs, warm
from bench.runtime_workloads import ROLLOUT_REQUESTS, Task, closed_loop, rollout

CONFIGURATIONS: Final = (*(fixed(k) for k in FIXED), NONE, OURS)
BATCHES: Final = 2
"""Batches for each round of the plan: a batch has one longest request, so it takes more of them than of a sweep's."""

DTYPE: Final = "float32"
METHOD: Final = " ".join(
    f"""
    Engines, model and drafter are those of the sweep, but in {DTYPE}: a greedy engine in bfloat16 writes a text that
    depends a little on the batch it runs in, so each configuration would have a batch of its own. A batch of
    {ROLLOUT_REQUESTS} edit requests starts at once; their lengths are log-normal with a long tail (median 56 tokens, at
    most 448), each edits as much text as its answer is long, and the time is taken until the last one ends. Each round
    has another batch, the same for every configuration, whose prompts are in the prefix cache. The schedule of ours
    comes from a profile of the fixed Ks on the sweep's edit workload at constant concurrency, with twice the sweep's
    rounds, before the measured ones. In each round all configurations run one after the other, each round beginning
    with another one; ratios are taken within a round.
    """.split()
)


def measure(model: str, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run it; (the rows of `data`, versions)."""
    plan = replace(plan, profile_rounds=2 * plan.profile_rounds)
    profiled_runs = len(plan.concurrencies) * plan.profile_rounds * len(FIXED)
    batches = [rollout(number, longest=448 // plan.shortening) for number in range(plan.rounds * BATCHES)]
    progress = Progress("rollout", profiled_runs + len(batches) * len(CONFIGURATIONS))
    with Pool() as pool:
        for spec in specs(model, DTYPE):
            pool.start(spec)
        runs = {c: closed_loop("edit", c, tokens(plan, c)) for c in plan.concurrencies}
        warm(pool, pool.members, runs)
        table, profiled = profile(pool, runs, plan, progress)
        pool.start(EngineSpec(OURS, model, LARGEST, table, plugin=True, dtype=DTYPE))
        found: dict[str, list[Run]] = {name: [] for name in CONFIGURATIONS}
        for number, batch in enumerate(batches):
            _prefill(pool, batch)
            for name in rotated(CONFIGURATIONS, number):
                found[name].append(pool[name].run(batch, len(batch)))
                progress.step(f"{name}: {found[name][-1].seconds:.1f} s")
        lengths = [[task.tokens for task in batch] for batch in batches]
        head = {"table": [list(t) for t in table], "lengths": lengths, "profile": profiled}
        rows = [head, *(_row(name, runs) for name, runs in found.items())]
        return [*rows, *_explanations(pool, batches, found)], pool[OURS].call("versions")


def _prefill(pool: Pool, batch: Sequence[Task]) -> None:
    """The prompts of `batch` go into every prefix cache."""
    for name in CONFIGURATIONS:
        pool[name].run(tuple(replace(task, tokens=1) for task in batch), len(batch))


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    seconds = [run.seconds for run in runs]
    drafted = sum(run.drafted for run in runs)
    return {
        "configuration": name,
        "acceptance": sum(run.accepted for run in runs) / drafted if drafted else None,
        "steps": [run.steps for run in runs],
        "seconds": extent(seconds),
        "samples": seconds,
    }


def _explanations(pool: Pool, batches: Sequence[Sequence[Task]], found: dict[str, list[Run]]) -> list[dict[str, Any]]:
    """Beside each other, ours and what it does not beat, under the profiler in the batch where it is furthest ahead."""
    ours = [run.seconds for run in found[OURS]]
    rows = []
    for name in CONFIGURATIONS[:-1]:
        ratios = pairs([run.seconds for run in found[name]], ours)
        if median(ratios) < 1:
            worst = min(range(len(batches)), key=ratios.__getitem__)
            batch = batches[worst]
            functions = {which: pool[which].call("profile", batch, len(batch)) for which in (OURS, name)}
            rows.append({"explains": f"{name} / ours, batch {worst}", "functions": functions})
    return rows
