"""A load that hovers around a boundary of the schedule, with and without smoothing: `python -m bench.hover`.

The case of vllm#49548: throughput collapses where concurrency crosses a threshold back and forth. `stepped` plays the
load, the same batch sizes for every policy; `results` has the format, `report` makes the page.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.results import RESULTS, Required, Result, environment, spread, write
from bench.stepped import MAX_NUM_SEQS, Arm, Plan, Played, play
from tools.cluster.paths import cache_root
from tools.models import tiny

NAME: Final = "hover"
BOUNDARY: Final = 9
HIGH: Final = 4
LOW: Final = 1
SMOOTHING: Final = {"dwellSteps": 20, "marginPercent": 10}
ROUNDS: Final = 5
STEPS: Final = 200

METHOD: Final = " ".join(
    f"""
    A real vLLM engine (tiny random Llama, float32, eager, one thread) is stepped by hand in one process per method, so
    that every step has the batch size that the load says: requests are added and aborted between steps. The schedule
    has K={HIGH} up to {BOUNDARY - 1} requests and K={LOW} from {BOUNDARY} on. Load "boundary" moves between
    {BOUNDARY - 1} and {BOUNDARY} and stays 1 to 4 steps on each side; load "around" wanders between {BOUNDARY - 3} and
    {BOUNDARY + 2}. Each round plays both loads under the plain table and under the table with smoothing
    ({SMOOTHING["dwellSteps"]} steps, {SMOOTHING["marginPercent"]} %), and the first load under each value of K fixed,
    in an order that turns from round to round; schedules are changed in place. K is read from vLLM's own scheduler
    output. The price of changing is the table's time over the time that the same steps took under the fixed K that the
    table chose in each: above 1, changing itself costs. Whether smoothed is faster than the table depends on which K
    is the better one at the boundary, so that is told and not required. A CPU has no CUDA graphs, so the collapse that
    vllm#49548 reports cannot occur here: this shows how often K changes; what a change costs on a GPU is not verified.
    """.split()
)


def boundary(steps: int) -> list[int]:
    """Batch sizes that hover at the boundary: below and above in turn, 1 to 4 steps each."""
    rng, sizes = random.Random(49548), list[int]()
    while len(sizes) < steps:
        sizes += [BOUNDARY - 1] * rng.randint(1, 4) + [BOUNDARY] * rng.randint(1, 4)
    return sizes[:steps]


def around(steps: int) -> list[int]:
    """Batch sizes that wander by one request at a time, beyond the margin on either side now and then."""
    rng, sizes = random.Random(49548), [BOUNDARY]
    while len(sizes) < steps:
        sizes.append(min(max(sizes[-1] + rng.choice((-1, 1)), BOUNDARY - 3), BOUNDARY + 2))
    return sizes


LOADS: Final = {"boundary": boundary, "around": around}


def content(low: int, high: int, smoothing: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The schedule with K=`high` below the boundary and K=`low` from it on, as in a PUT."""
    ranges = [(1, BOUNDARY - 1, high), (BOUNDARY, MAX_NUM_SEQS, low)]
    names = ("startBatchSize", "endBatchSize", "numSpeculativeTokens")
    found: dict[str, Any] = {"ranges": [dict(zip(names, row, strict=True)) for row in ranges]}
    return found | ({"smoothing": dict(smoothing)} if smoothing else {})


POLICIES: Final = {
    "table": content(LOW, HIGH),
    "smoothed": content(LOW, HIGH, SMOOTHING),
    f"K={HIGH}": content(HIGH, HIGH),
    f"K={LOW}": content(LOW, LOW),
}

HELD: Final = f"K={HIGH}"
"""What smoothing makes of the load at the boundary, which begins below it."""

CONDITIONS: Final = (*(("boundary", policy) for policy in POLICIES), ("around", "table"), ("around", "smoothed"))
"""(load, policy) of each arm of a round."""


def speculative(models: Path) -> dict[str, dict[str, Any]]:
    """The methods, as vLLM's own config."""
    return {
        "ngram": {"method": "ngram", "num_speculative_tokens": HIGH, "prompt_lookup_min": 1, "prompt_lookup_max": 4},
        "draft_model": {"method": "draft_model", "model": str(models / "draft"), "num_speculative_tokens": HIGH},
    }


def order(rounds: int) -> Iterator[tuple[str, str]]:
    """Every condition once per round, each round beginning with another one; a round before that nobody looks at."""
    for number in range(rounds + 1):
        first = number % len(CONDITIONS)
        yield from (*CONDITIONS[first:], *CONDITIONS[:first])


def measure(config: Mapping[str, Any], model: Path, rounds: int, steps: int) -> dict[tuple[str, str], list[Played]]:
    """Play all rounds with one method; what each condition did, round by round."""
    conditions = list(order(rounds))
    arms = [Arm(LOADS[load](steps), POLICIES[policy]) for load, policy in conditions]
    (played,) = play([Plan(str(model), config, arms)])
    found: dict[tuple[str, str], list[Played]] = {condition: [] for condition in CONDITIONS}
    for condition, one in list(zip(conditions, played, strict=True))[len(CONDITIONS) :]:
        found[condition].append(one)
    return found


def rows(method: str, played: Mapping[tuple[str, str], Sequence[Played]]) -> list[dict[str, Any]]:
    """The rows of `data` of one method: each condition, then what one policy is to another, round by round."""
    found = [condition_row(method, load, policy, played[load, policy]) for load, policy in CONDITIONS]
    for load, other in (("boundary", "table"), ("around", "table"), ("boundary", HELD)):
        pairs = zip(played[load, "smoothed"], played[load, other], strict=True)
        ratios = [rate(one) / rate(another) for one, another in pairs]
        found.append(ratio_row(method, load, f"tokens per second, smoothed / {other}", ratios))
    fixed = zip(*(played["boundary", policy] for policy in ("table", HELD, f"K={LOW}")), strict=True)
    return [*found, ratio_row(method, "boundary", "price of changing", [price(*arms) for arms in fixed])]


def condition_row(method: str, load: str, policy: str, played: Sequence[Played]) -> dict[str, Any]:
    """How one policy did under one load."""
    rates = [rate(one) for one in played]
    changes = [1000 * one.changes / len(one.tokens) for one in played]
    return {
        "method": method, "load": load, "policy": policy, "rounds": len(played), "steps": len(played[0].tokens),
        "changes_per_1000_steps": max(changes), "tokens_per_second": spread(rates), "samples": rates,
    }  # fmt: skip


def ratio_row(method: str, load: str, what: str, ratios: Sequence[float]) -> dict[str, Any]:
    """One ratio, round by round."""
    return {"method": method, "load": load, "ratio": what, "spread": spread(ratios), "samples": list(ratios)}


def rate(played: Played) -> float:
    """Tokens per second."""
    return played.emitted / sum(played.seconds)


def price(table: Played, high: Played, low: Played) -> float:
    """The table's time over that of the same steps under the K that the table chose, fixed. The K that is verified in
    a step was chosen a step before, so only steps that follow another compare."""
    of = {HIGH: high.seconds, LOW: low.seconds}
    same = [(of[before][step] + of[after][step]) / 2 for step, (before, after) in enumerate(pairwise(table.tokens), 1)]
    return sum(table.seconds[1:]) / sum(same)


def required_of(data: Sequence[Mapping[str, Any]]) -> tuple[Required, ...]:
    """What this benchmark must show, computed from `data`."""
    changes = {(r["load"], r["policy"], r["method"]): r["changes_per_1000_steps"] for r in data if "policy" in r}
    held = {r["method"]: r["samples"] for r in data if r.get("ratio", "").endswith(f"smoothed / {HELD}")}

    def of(load: str, policy: str) -> list[float]:
        return [found for key, found in changes.items() if key[:2] == (load, policy)]

    unit, dwell = "changes per 1000 steps", 1000 / SMOOTHING["dwellSteps"]
    return (
        Required.of("table at the boundary: the load hovers", min(of("boundary", "table")), unit, ">=", 200),
        Required.of("smoothing at the boundary", max(of("boundary", "smoothed")), unit, "<=", 0),
        Required.of("smoothing around the boundary", max(of("around", "smoothed")), unit, "<=", dwell),
        *(
            Required.of(f"{method}: smoothed over the K it holds", median(samples), "of tokens per second", ">=", 0.95)
            for method, samples in held.items()
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result; 1 when a required number is not met (never after `--quick`)."""
    parser = argparse.ArgumentParser(prog="python -m bench.hover", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a short run that shows that it works; numbers are void")
    quick = parser.parse_args(arguments).quick
    rounds, steps, folder = (2, 40, Path(tempfile.mkdtemp(prefix="dsd-bench-"))) if quick else (ROUNDS, STEPS, RESULTS)
    models, data = tiny.make(cache_root() / "models" / "tiny"), list[dict[str, Any]]()
    for method, config in speculative(models).items():
        data += rows(method, measure(config, models / "target", rounds, steps))
        print(f"{method}: measured", flush=True)
    software = {"vllm": version("vllm"), "dsd-runtime": version("dsd-runtime")}
    required = required_of(data)
    result = Result(environment=environment(software), method=METHOD, data=tuple(data), required=required)
    print(f"wrote {write(NAME, result, folder)}")
    for r in required:
        print(f"{'met ' if r.met else 'MISS'} {r.name}: {r.value:.3f} {r.unit} {r.relation} {r.threshold:g}")
    return 0 if quick or all(entry.met for entry in required) else 1


if __name__ == "__main__":
    sys.exit(main())
