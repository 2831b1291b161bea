"""The rollout of reinforcement learning: one batch until its last request ends. A part of `bench.runtime`.

The batch shrinks while its long requests go on, so no fixed K is right from its beginning to its end.
"""

from typing import Any, Final

from bench.results import extent
from bench.runtime_engine import LARGEST, EngineSpec, Run
from bench.runtime_plan import Plan, Progress, rotated, tokens
from bench.runtime_pool import Pool
from bench.runtime_ratios import FIXED, NONE, OURS, fixed
from bench.runtime_sweep import profile, specs, warm
from bench.runtime_workloads import ROLLOUT_REQUESTS, Task, closed_loop, rollout

CONFIGURATIONS: Final = (*(fixed(k) for k in FIXED), NONE, OURS)
METHOD: Final = " ".join(
    f"""
    Engines, model and drafter are those of the sweep. One batch of {ROLLOUT_REQUESTS} requests starts at once, half of
    each workload; their lengths are log-normal with a long tail (median 56 tokens, at most 448; the same list for
    everyone), and the time is taken until the last one ends. The schedule of ours comes from a profile of the fixed Ks
    on such requests at constant concurrency, before the measured rounds. In each round all configurations run one after
    the other, each round beginning with another one; ratios are taken within a round.
    """.split()
)


def measure(model: str, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run it; (the rows of `data`, versions)."""
    profiled_runs = len(plan.concurrencies) * plan.profile_rounds * len(FIXED)
    progress = Progress("rollout", profiled_runs + plan.rounds * len(CONFIGURATIONS))
    batch = rollout(longest=448 // plan.shortening)
    with Pool() as pool:
        for spec in specs(model):
            pool.start(spec)
        runs = {c: _mixed(c, tokens(plan, c)) for c in plan.concurrencies}
        warm(pool, pool.members, runs)
        table, profiled = profile(pool, runs, plan, progress)
        pool.start(EngineSpec(OURS, model, LARGEST, table, plugin=True))
        for name in CONFIGURATIONS:
            pool[name].run(batch, len(batch))
        found: dict[str, list[Run]] = {name: [] for name in CONFIGURATIONS}
        for number in range(plan.rounds):
            for name in rotated(CONFIGURATIONS, number):
                found[name].append(pool[name].run(batch, len(batch)))
                progress.step(f"{name}: {found[name][-1].seconds:.1f} s")
        head = {"table": [list(t) for t in table], "lengths": [task.tokens for task in batch], "profile": profiled}
        return [head, *(_row(name, runs) for name, runs in found.items())], pool[OURS].call("versions")


def _mixed(concurrency: int, length: int) -> tuple[Task, ...]:
    """Of each workload every other request."""
    edits, chats = closed_loop("edit", concurrency, length), closed_loop("chat", concurrency, length)
    return tuple(chats[i] if i % 2 else edits[i] for i in range(len(edits)))


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    seconds = [run.seconds for run in runs]
    return {"configuration": name, "steps": runs[-1].steps, "seconds": extent(seconds), "samples": seconds}
