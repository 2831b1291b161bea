"""The page's tables and pictures, from rows as the benchmarks write them."""

from typing import Any

import pytest

from bench import plots, report
from bench.results import Required, Result, environment, extent
from bench.runtime_ratios import FIXED, NONE, OURS, comparisons, fixed, sweep_required
from bench.tables import tables
from tests.unit.bench.test_operator import data as operator
from tests.unit.bench.test_runtime_ratios import sweep_rows

SCHEDULE = {"workload": "edit", "table": [[1, 8, 5], [9, 32, 0]]}
PROFILE = {
    "explains": "ours / stock",
    "workload": "chat",
    "concurrency": 16,
    "functions": {OURS: [{"function": "scheduler.py:12 schedule", "milliseconds": 0.25, "calls": 1.0}]},
}


def sweep() -> list[dict[str, Any]]:
    rows = [row | {"tokens_per_second": extent(row["samples"])} for row in sweep_rows()]
    return [SCHEDULE, *rows, *comparisons(rows), PROFILE]


def rollout() -> list[dict[str, Any]]:
    names = [*(fixed(k) for k in FIXED), NONE, OURS]
    return [{"configuration": name, "seconds": extent([9.0, 11.0]), "samples": [9.0, 11.0]} for name in names]


def swapcost() -> list[dict[str, Any]]:
    row = {"tokens_per_second": extent([99.0, 101.0]), "samples": [99.0, 101.0]}
    return [{"condition": "no swaps", **row}, {"condition": "swaps", **row}]


def hotswap() -> list[dict[str, Any]]:
    return [{"condition": name, "seconds": extent([0.1, 0.2]), "samples": [0.1, 0.2]} for name in ("load", "idle")]


DATA = {"sweep": sweep, "rollout": rollout, "swapcost": swapcost, "hotswap": hotswap, "operator": operator}


def result(data: list[dict[str, Any]]) -> Result:
    required = (Required.of("rounds", 5, "rounds", ">=", 5),)
    return Result(environment=environment({"vllm": "0"}), method="x" * 100, data=tuple(data), required=required)


def test_a_sweep_becomes_a_matrix_for_each_workload() -> None:
    lines = tables(sweep())
    assert "Schedule for edit: 1 to 8: K=5, 9 to 32: K=0.\n" in lines
    assert "| edit: tokens per second | 1 | 16 |" in lines
    assert "| fixed K=5 | 100 | 80 |" in lines
    assert "| K=0 / none | 0.800 (0.800 to 0.800) | 0.800 (0.800 to 0.800) |" in lines
    assert "| scheduler.py:12 schedule | 0.250 | 1 |" in lines


def test_rows_of_one_kind_share_a_table() -> None:
    lines = tables([*swapcost(), {"condition": "other", "milliseconds": extent([1.0, 2.0]), "note": [1]}])
    assert "| no swaps | 99 | 100 | 101 |" in lines
    assert "| other | 1 | 1.5 | 2 |" in lines
    assert len([line for line in lines if line.startswith("| condition")]) == 2


@pytest.mark.parametrize("name", DATA)
def test_a_picture_is_the_same_each_time(name: str) -> None:
    drawn = plots.svg(name, result(DATA[name]()))
    assert drawn == plots.svg(name, result(DATA[name]()))
    assert drawn.startswith("<?xml")
    assert len(drawn) < 150_000


def test_every_picture_is_drawn_here() -> None:
    assert set(DATA) == set(plots.PLOTS)


def test_a_picture_follows_the_data() -> None:
    slower = [row | {"samples": [1.0, 2.0]} for row in hotswap()]
    assert plots.svg("hotswap", result(slower)) != plots.svg("hotswap", result(hotswap()))


def test_a_benchmark_without_a_picture_has_a_section_too() -> None:
    text = report.page({"new": result(swapcost()), "sweep": result(sweep())})
    assert "## new" in text
    assert "![new]" not in text
    assert "![sweep](benchmarks/sweep.svg)" in text


def test_what_the_sweep_requires_is_computed_from_rows_as_they_are_written() -> None:
    assert all(r.met for r in sweep_required(sweep()))
