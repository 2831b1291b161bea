"""The arithmetic of the runtime's benchmarks: pairs, ratios, the choice of a table, what is required. Pure.

A ratio is taken within one round, between two configurations that ran one after the other on the same machine; a figure
is the median of the rounds' ratios. Everything is computed from the rows of `data`, so that whoever has the file can.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from statistics import median
from typing import Any, Final

from bench.results import Required, extent

Rows = Sequence[dict[str, Any]]
Triples = tuple[tuple[int, int, int], ...]
FIXED: Final = (0, 1, 3, 5)
NONE: Final = "no speculation"
STOCK: Final = "stock vLLM, static table"
OURS: Final = "ours"
MARGIN: Final = 0.02
"""A gain below this share is a tie."""


def fixed(k: int) -> str:
    """Name of the configuration with a fixed K."""
    return f"fixed K={k}"


def pairs(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """first / second, round by round; raises ValueError where a round is missing."""
    return [a / b for a, b in zip(first, second, strict=True)]


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    found = list(values)
    return float(prod(found) ** (1 / len(found)))


def choose(profile: Mapping[int, Mapping[int, Sequence[float]]], largest: int, margin: float = MARGIN) -> Triples:
    """A table from a profile: concurrency -> K -> throughput in each round.

    At the lowest concurrency the K with the best median. From there upwards the K before is kept while it is within
    `margin` of the best (the median of the rounds' ratios), for what a short profile cannot tell apart must not change
    K. A K holds from above the concurrency before up to its own; the last one up to `largest`.
    """
    table: list[tuple[int, int, int]] = []
    for concurrency in sorted(profile):
        rounds = profile[concurrency]
        best = max(rounds, key=lambda k: (median(rounds[k]), -k))
        kept = table[-1][2] if table else best
        if median(pairs(rounds[kept], rounds[best])) < 1 - margin:
            kept = best
        start = table[-1][1] + 1 if table else 1
        table.append((start, concurrency, kept))
    table[-1] = (table[-1][0], max(largest, table[-1][1]), table[-1][2])
    return merged(table)


def merged(table: Sequence[tuple[int, int, int]]) -> Triples:
    """Neighbouring ranges with one K as one range."""
    found: list[tuple[int, int, int]] = []
    for start, end, k in table:
        if found and found[-1][2] == k:
            found[-1] = (found[-1][0], end, k)
        else:
            found.append((start, end, k))
    return tuple(found)


def cells(rows: Rows, configuration: str) -> dict[tuple[str, int], list[float]]:
    """(workload, concurrency) -> throughput in each round, of one configuration."""
    return {
        (row["workload"], row["concurrency"]): row["samples"]
        for row in rows
        if row.get("configuration") == configuration
    }


def best_fixed(rows: Rows, cell: tuple[str, int]) -> str:
    """The fixed K with the highest median in a cell: one configuration, not the luckiest of each round."""
    return max((fixed(k) for k in FIXED), key=lambda name: median(cells(rows, name)[cell]))


def cell_ratios(rows: Rows, first: str, second: str | None) -> dict[tuple[str, int], list[float]]:
    """Ratios round by round in each cell; without `second`, against the cell's best fixed K."""
    return {
        cell: pairs(values, cells(rows, second or best_fixed(rows, cell))[cell])
        for cell, values in cells(rows, first).items()
    }


def whole(rows: Rows, first: str, second: str) -> list[float]:
    """Over the whole sweep: in each round the geometric mean of all cells' ratios; each cell counts the same."""
    return [geometric_mean(ratios) for ratios in zip(*cell_ratios(rows, first, second).values(), strict=True)]


def comparisons(rows: Rows) -> list[dict[str, Any]]:
    """The rows of `data` with the ratios of each cell that the page shows."""
    wanted = (("ours / best fixed K", OURS, None), ("ours / stock", OURS, STOCK), ("K=0 / none", fixed(0), NONE))
    return [
        {
            "comparison": name,
            "workload": workload,
            "concurrency": concurrency,
            "against": second or best_fixed(rows, (workload, concurrency)),
            "ratio": extent(ratios),
        }
        for name, first, second in wanted
        for (workload, concurrency), ratios in cell_ratios(rows, first, second).items()
    ]


def sweep_required(rows: Rows) -> tuple[Required, ...]:
    """What the sweep must show."""
    against_best = {cell: median(ratios) for cell, ratios in cell_ratios(rows, OURS, None).items()}
    concurrencies = sorted({concurrency for _, concurrency in against_best})
    lowest = {c: min(ratio for (_, at), ratio in against_best.items() if at == c) for c in concurrencies}
    return (
        *(
            Required.of(f"ours / best fixed K at concurrency {c} (goal 0.98)", lowest[c], "ratio", ">=", 0.95)
            for c in concurrencies
        ),
        *(
            Required.of(f"ours / fixed K={k}, whole sweep", median(whole(rows, OURS, fixed(k))), "ratio", ">=", 1.0)
            for k in FIXED
        ),
        Required.of("ours / stock vLLM with the same table", median(whole(rows, OURS, STOCK)), "ratio", ">=", 0.99),
        Required.of("rounds", min(len(row["samples"]) for row in rows if "configuration" in row), "rounds", ">=", 5),
    )


def rollout_required(rows: Rows) -> tuple[Required, ...]:
    """What the rollout must show: seconds of the others over ours, in pairs."""
    seconds = {row["configuration"]: row["samples"] for row in rows if "configuration" in row}
    names = [*(fixed(k) for k in FIXED), NONE]
    return (
        *(
            Required.of(f"wall time of {name} / ours", median(pairs(seconds[name], seconds[OURS])), "ratio", ">=", 1.0)
            for name in names
        ),
        Required.of("rounds", len(seconds[OURS]), "rounds", ">=", 5),
    )


def swapcost_required(rows: Rows) -> tuple[Required, ...]:
    """What the swap cost must be: throughput with swaps over throughput without, in pairs."""
    found = {row["condition"]: row for row in rows if "condition" in row}
    ratios = pairs(found["swaps"]["samples"], found["no swaps"]["samples"])
    rate = min(found["swaps"]["swaps_per_second"])
    return (
        Required.of("throughput with swaps / without", median(ratios), "ratio", ">=", 0.98),
        Required.of("swaps per second, lowest run", rate, "1/s", ">=", 99.0),
        Required.of("seconds per run", min(found["swaps"]["run_seconds"]), "s", ">=", 60.0),
        Required.of("pairs", len(ratios), "pairs", ">=", 5),
    )
