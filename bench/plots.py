"""The pictures of the result files, as SVG under docs/benchmarks/: `report` writes them and links them.

A benchmark with pictures has an entry in PLOTS; one without is fine. The same data gives the same bytes.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bench.results import Result
from bench.runtime_ratios import NONE, OURS, STOCK, cells
from bench.tables import middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Final[Any] = {
    "svg.hashsalt": "dsd",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def hotswap(result: Result) -> "Figure":
    """Share of the changes that the last pod had acknowledged after so many seconds."""
    figure, (axes,) = _figure(1)
    for row in result.data:
        if "samples" in row:
            axes.ecdf(row["samples"], label=row["condition"])
    axes.set(xlabel="seconds until the last pod acknowledges", ylabel="share of the changes", xscale="log")
    axes.legend()
    return figure


def sweep(result: Result) -> "Figure":
    """Throughput over concurrency, relative to the engine without speculation, for each workload."""
    workloads = list(dict.fromkeys(row["workload"] for row in result.data if "configuration" in row))
    figure, panels = _figure(len(workloads))
    names = list(dict.fromkeys(row["configuration"] for row in result.data if "configuration" in row))
    for axes, workload in zip(panels, workloads, strict=True):
        for name in names:
            _line(axes, _relative(result.data, name, workload), name)
        axes.set(title=workload, xlabel="concurrency", ylabel=f"throughput / {NONE}", xscale="log")
        ticks = [c for w, c in cells(result.data, NONE) if w == workload]
        axes.set_xticks(ticks, [str(c) for c in ticks])
        axes.minorticks_off()
    lines, labels = panels[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=4)
    return figure


def _relative(data: Sequence[dict[str, Any]], name: str, workload: str) -> dict[int, float]:
    """Concurrency -> median of the rounds' ratios to no speculation."""
    base, own = cells(data, NONE), cells(data, name)
    found = {}
    for (at, concurrency), values in own.items():
        if at == workload:
            ratios = sorted(a / b for a, b in zip(values, base[at, concurrency], strict=True))
            found[concurrency] = ratios[len(ratios) // 2]
    return found


def _line(axes: "Axes", values: Mapping[int, float], name: str) -> None:
    style: dict[str, Any] = {OURS: {"linewidth": 2.5, "color": "black"}, STOCK: {"linestyle": ":", "linewidth": 2.5}}
    axes.plot(list(values), list(values.values()), label=name, marker=".", **style.get(name, {"linewidth": 1}))


def rollout(result: Result) -> "Figure":
    """Wall time of the batch for each configuration: median, with minimum and maximum."""
    rows = [row for row in result.data if "configuration" in row]
    figure, (axes,) = _figure(1)
    medians = [middle(row["seconds"]) for row in rows]
    low = [m - row["seconds"]["min"] for m, row in zip(medians, rows, strict=True)]
    high = [row["seconds"]["max"] - m for m, row in zip(medians, rows, strict=True)]
    colours = ["black" if row["configuration"] == OURS else "tab:blue" for row in rows]
    axes.barh([row["configuration"] for row in rows], medians, xerr=[low, high], color=colours, ecolor="tab:red")
    axes.set(xlabel="seconds until the last request ends")
    return figure


def swapcost(result: Result) -> "Figure":
    """Throughput of each pair, with swaps and without."""
    figure, (axes,) = _figure(1)
    for row in result.data:
        if "condition" in row:
            axes.plot(range(1, len(row["samples"]) + 1), row["samples"], marker="o", label=row["condition"])
    axes.set(xlabel="pair", ylabel="tokens per second")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def operator(result: Result) -> "Figure":
    """Share of the changes that the last pod had put into use after so many seconds: one large, and many at once."""
    rows = [row for row in result.data if "change" in row]
    changes = list(dict.fromkeys(row["change"] for row in rows))
    figure, panels = _figure(len(changes))
    for axes, change in zip(panels, changes, strict=True):
        for row in rows:
            if row["change"] == change:
                axes.ecdf(row["samples"], label=row["pods"])
        axes.set(title=change, xlabel="seconds until the last pod acknowledges", ylabel="share of the changes")
        axes.set_xlim(left=0)
        axes.legend(loc="lower right")
    return figure


PLOTS: Final[dict[str, Callable[[Result], "Figure"]]] = {
    "hotswap": hotswap,
    "operator": operator,
    "sweep": sweep,
    "rollout": rollout,
    "swapcost": swapcost,
}


def svg(name: str, result: Result) -> str:
    """The picture of benchmark `name`."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        written = io.StringIO()
        PLOTS[name](result).savefig(written, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _figure(panels: int) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * panels, 3.2), layout="constrained")
    return figure, [figure.add_subplot(1, panels, i + 1) for i in range(panels)]
