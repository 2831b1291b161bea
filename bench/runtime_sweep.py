"""The sweep: throughput of every configuration at every concurrency, on two workloads. A part of `bench.runtime`."""

from collections.abc import Iterable
from statistics import median
from typing import Any, Final

from bench.results import extent
from bench.runtime_engine import LARGEST, MAX_NUM_SEQS, EngineSpec, Run
from bench.runtime_plan import Plan, Progress, rotated, tokens
from bench.runtime_pool import Pool
from bench.runtime_ratios import FIXED, NONE, OURS, STOCK, Triples, cell_ratios, choose, comparisons, fixed
from bench.runtime_workloads import KINDS, Kind, Task, closed_loop

CONFIGURATIONS: Final = (*(fixed(k) for k in FIXED), NONE, STOCK, OURS)
METHOD: Final = " ".join(
    f"""
    SmolLM2-135M-Instruct in bfloat16, ngram drafts (lookup 1 to 4), greedy, every request with a fixed number of
    tokens. Each configuration is an engine in a process of its own (engine core and front end in that process, all
    cores, eager), all in one process tree; one at a time works, the others sleep. A closed loop keeps N requests in
    flight and serves a fixed list, 1.5 N requests; throughput is tokens over the time until the last one ends, so the
    end of a run is below N. Prefix caching is on, as by default, and warm, so that decoding is measured and not the
    prompts. Fixed K=1, 3 and 5 are vLLM with that num_speculative_tokens; K=0 is vLLM with a static table of 0; ours is
    the plugin with the schedule in its config file and its metrics recorded on tmpfs. The table of a workload comes
    from a profile of the fixed Ks before the measured rounds: the best K at the lowest concurrency, kept at the next
    ones while it is within 2 % of the best there. For the second workload ours gets the new table in place; stock vLLM
    is started again. In each round all configurations run one after the other, each round beginning with another one; a
    ratio is taken within a round, and its median, minimum and maximum over the rounds are given. "Best fixed K" is the
    one with the highest median in that cell. Over the whole sweep a round's ratio is the geometric mean of its cells'.
    Workloads: edit (repeat a text or a program of about 150 tokens with a name changed) and chat (short questions,
    repetition penalty 1.2). Maximum batch {MAX_NUM_SEQS}, largest K {LARGEST}.
    """.split()
)


def specs(model: str, dtype: str = "auto") -> list[EngineSpec]:
    """The configurations that need no table from the profile."""
    zero = EngineSpec(fixed(0), model, LARGEST, ((1, MAX_NUM_SEQS, 0),), dtype=dtype)
    others = [*((fixed(k), k) for k in FIXED if k), (NONE, None)]
    return [zero, *(EngineSpec(name, model, tokens, dtype=dtype) for name, tokens in others)]


def measure(model: str, plan: Plan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run the whole sweep; (the rows of `data`, versions)."""
    per_workload = len(plan.concurrencies) * (plan.profile_rounds * len(FIXED) + plan.rounds * len(CONFIGURATIONS))
    progress = Progress("sweep", len(KINDS) * per_workload)
    rows: list[dict[str, Any]] = []
    with Pool() as pool:
        for spec in specs(model):
            pool.start(spec)
        for kind in KINDS:
            rows += _workload(pool, model, plan, kind, progress)
        rows += [*comparisons(rows), _explanation(pool, plan, rows)]
        return rows, pool[OURS].call("versions")


def _workload(pool: Pool, model: str, plan: Plan, kind: Kind, progress: Progress) -> list[dict[str, Any]]:
    runs = {c: closed_loop(kind, c, tokens(plan, c)) for c in plan.concurrencies}
    warm(pool, pool.members, runs)
    table, profiled = profile(pool, runs, plan, progress)
    use_table(pool, model, table)
    warm(pool, (STOCK, OURS), runs)
    print(f"sweep: the table for {kind} is {table}", flush=True)
    samples: dict[tuple[int, str], list[Run]] = {}
    for number in range(plan.rounds):
        for concurrency, tasks in runs.items():
            for name in rotated(CONFIGURATIONS, number):
                run = pool[name].run(tasks, concurrency)
                samples.setdefault((concurrency, name), []).append(run)
                progress.step(f"{kind}, {concurrency} at once, {name}: {run.throughput:.0f} tokens/s")
    head = {"workload": kind, "table": [list(triple) for triple in table], "profile": profiled}
    return [head, *(_row(kind, c, name, found) for (c, name), found in samples.items())]


def warm(pool: Pool, names: Iterable[str], runs: dict[int, tuple[Task, ...]]) -> None:
    """Fill caches: every prompt of the workload once. Its measurement is dropped."""
    largest = max(runs)
    for name in list(names):
        pool[name].run(runs[largest], largest)


def profile(
    pool: Pool, runs: dict[int, tuple[Task, ...]], plan: Plan, progress: Progress
) -> tuple[Triples, list[dict[str, Any]]]:
    """(the table, what it was chosen by): the fixed Ks at every concurrency."""
    found: dict[int, dict[int, list[float]]] = {c: {k: [] for k in FIXED} for c in runs}
    for number in range(plan.profile_rounds):
        for concurrency, tasks in runs.items():
            for k in rotated(FIXED, number):
                throughput = pool[fixed(k)].run(tasks, concurrency).throughput
                found[concurrency][k].append(throughput)
                progress.step(f"profile, {concurrency} at once, K={k}: {throughput:.0f} tokens/s")
    rows = [{"concurrency": c, "k": k, "samples": v} for c, by_k in found.items() for k, v in by_k.items()]
    return choose(found, MAX_NUM_SEQS), rows


def use_table(pool: Pool, model: str, table: Triples) -> None:
    """Stock vLLM is started with the table; ours takes it in place where it runs already."""
    pool.start(EngineSpec(STOCK, model, LARGEST, table))
    if OURS in pool.members:
        pool.put(OURS, table)
    else:
        pool.start(EngineSpec(OURS, model, LARGEST, table, plugin=True))


def _row(kind: Kind, concurrency: int, name: str, runs: list[Run]) -> dict[str, Any]:
    drafted = sum(run.drafted for run in runs)
    return {
        "workload": kind,
        "concurrency": concurrency,
        "configuration": name,
        "tokens_per_second": extent([run.throughput for run in runs]),
        "acceptance": sum(run.accepted for run in runs) / drafted if drafted else None,
        "tokens_per_step": sum(run.tokens for run in runs) / sum(run.steps for run in runs),
        "samples": [run.throughput for run in runs],
    }


def _explanation(pool: Pool, plan: Plan, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The profile of ours and of stock vLLM where ours is furthest behind it, in the last workload's table."""
    last = {cell: median(r) for cell, r in cell_ratios(rows, OURS, STOCK).items() if cell[0] == KINDS[-1]}
    kind, concurrency = min(last, key=lambda cell: last[cell])
    tasks = closed_loop(KINDS[-1], concurrency, tokens(plan, concurrency))
    functions = {name: pool[name].call("profile", tasks, concurrency) for name in (OURS, STOCK)}
    return {"explains": "ours / stock", "workload": kind, "concurrency": concurrency, "functions": functions}
